//! A place for a driver: its process, or after that was killed the next one, and its requests.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Error, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rlock_torture::clock::now_us;
use rlock_torture::saw::{Ask, Life, Record, Told};
use serde_json::{json, Value};

use crate::asked::Asked;
use crate::backend::Backend;
use crate::book::{locked, Book};
use crate::build::Kind;
use crate::locks;
use crate::process::{send_signal, spawn};
use crate::proxy::Proxy;
use crate::server::NO_FUNCTIONS;
use crate::sticky;
use crate::way;

/// For a driver to end when its input has.
const END: Duration = Duration::from_secs(20);

type Answers = HashMap<u64, Sender<(u64, Value)>>;

pub struct Driver {
    pub number: usize,
    pub kind: Arc<Kind>,
    /// By what its client is to keep its locks.
    pub backend: Backend,
    /// For how long its program may be silent, ms; none: as long as its client says by itself, which
    /// is longer than a round.
    pub patience: Option<u64>,
    pub proxy: Arc<Proxy>,
    pub book: Arc<Book>,
    ids: AtomicU64,
    /// What it says on its standard error.
    errors: PathBuf,
    /// The holds that its programs have.
    held: Mutex<HashSet<String>>,
    probes: Mutex<Vec<JoinHandle<()>>>,
    now: Mutex<Now>,
}

struct Now {
    life: u32,
    /// The last life that was killed.
    killed: u32,
    since: u64,
    child: Option<Child>,
    input: Option<ChildStdin>,
    /// Its locks are open.
    ready: bool,
    /// What its client has, of the needs of scenarios.
    needs: HashSet<String>,
    answers: Answers,
    /// It said what is no answer and no event.
    wrong: Option<String>,
}

impl Driver {
    pub fn new(
        number: usize,
        (kind, backend, patience): (&Arc<Kind>, Backend, Option<u64>),
        proxy: Arc<Proxy>,
        book: &Arc<Book>,
        dir: &Path,
    ) -> Self {
        Self {
            number,
            kind: Arc::clone(kind),
            backend,
            patience,
            proxy,
            book: Arc::clone(book),
            ids: AtomicU64::new(1),
            errors: dir.join(format!("driver-{number}-{}.stderr", kind.name)),
            held: Mutex::default(),
            probes: Mutex::default(),
            now: Mutex::new(Now {
                life: 0,
                killed: 0,
                since: 0,
                child: None,
                input: None,
                ready: false,
                needs: HashSet::new(),
                answers: Answers::new(),
                wrong: None,
            }),
        }
    }

    /// By the main thread only.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        let mut command = self.kind.start()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(
            File::options()
                .create(true)
                .append(true)
                .open(&self.errors)?,
        );
        let since = now_us();
        let mut child = spawn(command)?;
        let output = child.stdout.take();
        let life = {
            let mut now = locked(&self.now);
            now.life += 1;
            now.since = since;
            now.input = child.stdin.take();
            now.ready = false;
            now.child = Some(child);
            now.life
        };
        let (ours, output) = (Arc::clone(self), output.ok_or_else(no_pipe)?);
        thread::spawn(move || ours.read(output, life));
        let mut to =
            json!({"locks": "l", "host": "127.0.0.1", "port": self.proxy.port, "timeout": 2000});
        if self.backend == Backend::Script {
            (to["user"], to["password"]) = (NO_FUNCTIONS.into(), NO_FUNCTIONS.into());
        }
        let needs = self.needs();
        if let Some(ms) = self.patience.filter(|_| needs.contains("patience")) {
            to["patience"] = ms.into();
        }
        self.ask("open", "", to).finish();
        for key in locks::STICKY.iter().filter(|_| needs.contains("sticky")) {
            let mut words = sticky::words(key, self.patience);
            words["sticky"] = (*key).into();
            self.ask("sticky", "", words).finish();
        }
        let mut now = locked(&self.now);
        (now.ready, now.needs) = (true, needs);
        Ok(())
    }

    /// Whether its client has what a scenario may need.
    pub fn can(&self, need: &str) -> bool {
        self.ready().needs.contains(need)
    }

    fn needs(&self) -> HashSet<String> {
        let said = self.ask("hello", "", json!({})).finish();
        let needs = said.out["ok"]["needs"].as_array().into_iter().flatten();
        needs
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect()
    }

    /// As reports say it.
    pub fn name(&self) -> String {
        match self.backend {
            Backend::Module => self.kind.name.clone(),
            other => format!("{} by {}", self.kind.name, other.name()),
        }
    }

    /// By what its client says that it keeps its locks; none while it does not know.
    pub fn says_backend(&self) -> Option<String> {
        let said = self.ask("backend", "", json!({})).finish();
        said.out["ok"]["backend"].as_str().map(str::to_owned)
    }

    fn read(&self, output: ChildStdout, life: u32) {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let at = now_us();
            let said: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
            if said["event"] == "lost" {
                self.book.write(&Record::Told(Told {
                    driver: self.number,
                    life,
                    hold: text(&said, "hold"),
                    reason: text(&said, "reason"),
                    at,
                }));
                continue;
            }
            let mut now = locked(&self.now);
            let id = said["id"].as_u64();
            match id.and_then(|id| now.answers.remove(&id)) {
                Some(asked) => drop(asked.send((at, said))),
                // It may have said so just before it was killed.
                None if now.killed >= life => (),
                None => now.wrong = Some(format!("said what nobody asked for: {line}")),
            }
        }
        let mut now = locked(&self.now);
        if now.life == life {
            now.answers.clear();
        }
    }

    /// Asks; what was asked and answered is written down when it is over.
    pub fn ask(&self, what: &str, hold: &str, words: Value) -> Asked {
        let now = match what {
            "hello" | "open" | "sticky" => locked(&self.now),
            _ => self.ready(),
        };
        self.ask_of(now, what, hold, words)
    }

    /// Asks the process of this life; none: it is dead.
    pub fn ask_in(&self, life: u32, what: &str, hold: &str, words: Value) -> Option<Asked> {
        let now = self.ready();
        (now.life == life).then(|| self.ask_of(now, what, hold, words))
    }

    fn ask_of(&self, mut now: MutexGuard<'_, Now>, what: &str, hold: &str, words: Value) -> Asked {
        let id = self.ids.fetch_add(1, SeqCst);
        let mut line = words.clone();
        line["id"] = id.into();
        line["do"] = sticky::request(hold, what).into();
        line["locks"] = "l".into();
        if sticky::is_use(hold) {
            (line["use"], line["sticky"]) = (hold.into(), words["key"].clone());
        } else if !hold.is_empty() {
            line["hold"] = way::of_driver(hold).into();
        }
        let (send, answer) = channel();
        let mut ask = Ask {
            driver: self.number,
            life: now.life,
            what: what.to_owned(),
            hold: hold.to_owned(),
            words,
            ..Ask::default()
        };
        now.answers.insert(id, send);
        ask.call = now_us();
        let sent = match &mut now.input {
            Some(input) => input.write_all(format!("{line}\n").as_bytes()),
            None => Err(no_pipe()),
        };
        if sent.is_err() {
            now.answers.remove(&id);
        }
        let book = Arc::clone(&self.book);
        Asked {
            id,
            ask,
            answer,
            book,
        }
    }

    pub fn has(&self, hold: &str, has: bool) {
        let mut held = locked(&self.held);
        match has {
            true => held.insert(hold.to_owned()),
            false => held.remove(hold),
        };
    }

    /// To be asked of it all, whether its programs have still what they held: what it does first
    /// when it goes on after standing still.
    pub fn probe(&self) {
        let held = locked(&self.held).clone();
        let asked: Vec<Asked> = held
            .iter()
            .map(|hold| self.ask("state", hold, json!({})))
            .collect();
        let probe = thread::spawn(|| {
            for one in asked {
                one.finish();
            }
        });
        locked(&self.probes).push(probe);
    }

    pub fn signal(&self, signal: i32) {
        if let Some(child) = &locked(&self.now).child {
            send_signal(child.id(), signal);
        }
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) {
        let mut now = locked(&self.now);
        if let Some(mut child) = now.child.take() {
            now.killed = now.life;
            let _ = child.kill();
            let _ = child.wait();
            now.input = None;
            now.ready = false;
            now.answers.clear();
            locked(&self.held).clear();
            self.write_life(&mut now, true, None);
        }
    }

    /// Closes its input, and waits for its end.
    pub fn end(&self) {
        for probe in locked(&self.probes).drain(..) {
            let _ = probe.join();
        }
        let mut child = {
            let mut now = locked(&self.now);
            now.input = None;
            let Some(child) = now.child.take() else {
                return;
            };
            child
        };
        let end = Instant::now() + END;
        let mut status = None;
        while status.is_none() && Instant::now() < end {
            status = child.try_wait().ok().flatten();
            thread::sleep(Duration::from_millis(5));
        }
        let mut wrong = match status {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("ended by {status}")),
            None => Some(format!("did not end within {END:?}")),
        };
        let _ = child.kill();
        let _ = child.wait();
        let mut now = locked(&self.now);
        wrong = wrong.or(now.wrong.take());
        self.write_life(&mut now, false, wrong);
    }

    /// Each request runs by itself: none may come before the locks are open.
    fn ready(&self) -> MutexGuard<'_, Now> {
        loop {
            let now = locked(&self.now);
            if now.ready {
                return now;
            }
            drop(now);
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn write_life(&self, now: &mut Now, killed: bool, wrong: Option<String>) {
        self.book.write(&Record::Life(Life {
            driver: self.number,
            life: now.life,
            from: now.since,
            to: now_us(),
            killed,
            wrong,
        }));
    }

    /// It has ended, though nobody told it to.
    pub fn is_gone(&self) -> bool {
        let mut now = locked(&self.now);
        let child = now.child.as_mut();
        child.is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().to_owned()
}

fn no_pipe() -> Error {
    io::ErrorKind::BrokenPipe.into()
}
