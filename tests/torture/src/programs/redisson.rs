//! The real Redisson, which takes the same locks by its own scripts: threads of one Java program
//! (`tests/redisson`), over connections that nothing is done to.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Error, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::Duration;

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::saw::{Ask, Record};
use serde_json::{json, Value};

use crate::book::{locked, Book};
use crate::locks;
use crate::process::spawn;

/// What `build` ends with where a tool is missing.
const MISSING: i32 = 3;
/// An answer that has not come by then never comes.
const ANSWER: Duration = Duration::from_secs(60);
/// The lease of what is taken without one; the program is told so.
const WATCHDOG: u64 = 10_000;

/// What was built.
pub struct Program(PathBuf);

impl Program {
    /// Builds it; an error with why, if it is to be skipped.
    pub fn build(root: &Path, target: &Path) -> io::Result<Result<Self, String>> {
        let built = target.join("torture-redisson");
        let done = Command::new(root.join("tests/redisson/build"))
            .arg(&built)
            .output()?;
        match done.status.code() {
            Some(0) => Ok(Ok(Self(built))),
            Some(MISSING) => Ok(Err(String::from_utf8_lossy(&done.stdout).trim().to_owned())),
            _ => Err(Error::other(String::from_utf8_lossy(&done.stderr))),
        }
    }
}

/// The running program.
pub struct Redisson {
    child: Child,
    input: Arc<Mutex<ChildStdin>>,
    answers: Arc<Mutex<HashMap<usize, Sender<String>>>>,
}

impl Redisson {
    /// By the main thread only.
    pub fn start(program: &Program, server: u16, dir: &Path) -> io::Result<Self> {
        let built = &program.0;
        let path = std::fs::read_to_string(built.join("classpath"))?;
        let classes = built.join("classes").display().to_string();
        let mut command = Command::new("java");
        command
            .arg("-XX:+UseSerialGC")
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .args(["-cp", &format!("{classes}:{}", path.trim())])
            .arg("interop.torture.Players")
            .args([server.to_string(), WATCHDOG.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(dir.join("redisson.stderr"))?);
        let mut child = spawn(command)?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else {
            return Err(Error::other("no pipe"));
        };
        let mut lines = BufReader::new(output).lines();
        if lines.next().transpose()?.as_deref() != Some("ready") {
            return Err(Error::other("Redisson did not start"));
        }
        let answers: Arc<Mutex<HashMap<usize, Sender<String>>>> = Arc::default();
        let to = Arc::clone(&answers);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let (player, said) = line.split_once(' ').unwrap_or_default();
                let player = player.parse().unwrap_or(usize::MAX);
                if let Some(answer) = locked(&to).get(&player) {
                    let _ = answer.send(said.to_owned());
                }
            }
            locked(&to).clear();
        });
        let input = Arc::new(Mutex::new(input));
        Ok(Self {
            child,
            input,
            answers,
        })
    }

    /// It has ended, though nobody told it to.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn line(&self, player: usize) -> Line {
        let (send, answers) = channel();
        locked(&self.answers).insert(player, send);
        Line {
            player,
            input: Arc::clone(&self.input),
            answers,
        }
    }
}

impl Drop for Redisson {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// To one thread of the program, and back.
pub struct Line {
    player: usize,
    input: Arc<Mutex<ChildStdin>>,
    answers: Receiver<String>,
}

impl Line {
    fn ask(&self, what: &str) -> Option<String> {
        let line = format!("{} {what}\n", self.player);
        locked(&self.input).write_all(line.as_bytes()).ok()?;
        self.answers.recv_timeout(ANSWER).ok()
    }
}

pub struct Thread {
    pub line: Line,
    /// As the history calls Redisson.
    pub driver: usize,
    pub rng: Rng,
    pub book: Arc<Book>,
    pub stop: Arc<AtomicBool>,
}

impl Thread {
    pub fn play(mut self) {
        let mut count = 0;
        while !self.stop.load(SeqCst) {
            count += 1;
            let hold = format!("{}.{}.{count}", self.driver, self.line.player);
            let mut words = locks::for_redisson(&mut self.rng);
            let (lease, told) = match self.rng.u32(0..4) {
                0 => (WATCHDOG, -1),
                _ => {
                    let lease = self.rng.u64(500..2500);
                    (lease, lease as i64)
                }
            };
            words["lease"] = lease.into();
            words["watchdog"] = false.into();
            let (key, verb) = (text(&words, "key"), text(&words, "verb"));
            let wait = self.rng.u64(0..500);
            if !self.says(
                "acquire",
                &hold,
                &format!("{verb} {key} {wait} {told}"),
                words,
            ) {
                sleep(Duration::from_millis(self.rng.u64(0..10)));
                continue;
            }
            sleep(Duration::from_millis(self.rng.u64(0..20)));
            self.says("release", &hold, "unlock", Value::Null);
        }
    }

    /// Whether the answer is that it is done.
    fn says(&self, what: &str, hold: &str, line: &str, words: Value) -> bool {
        let call = now_us();
        let said = self.line.ask(line);
        let reply = said.is_some().then(now_us);
        let said = said.unwrap_or_default();
        let (first, rest) = said.split_once(' ').unwrap_or((&said, ""));
        let out = match first {
            "ok" => json!({"ok": {"token": rest.parse::<i64>().ok()}}),
            "failed" => json!({"error": "connection", "text": rest}),
            // `not_acquired`, `lost`, or what is no right answer.
            other => json!({"error": other, "text": rest}),
        };
        let is_done = first == "ok";
        self.book.write(&Record::Ask(Ask {
            driver: self.driver,
            what: what.to_owned(),
            hold: hold.to_owned(),
            words,
            call,
            reply,
            out,
            ..Ask::default()
        }));
        is_done
    }
}

fn text(words: &Value, name: &str) -> String {
    words[name].as_str().unwrap_or_default().to_owned()
}
