//! A faulty wire between a driver and the server: cuts, loses, holds back, freezes, and lets the
//! server believe that a closed connection is open.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rlock_torture::clock::now_us;
use rlock_torture::saw::{Record, Wire};

use crate::book::{locked, Book};

/// After a request whose reply is to be lost so long, then the connection is cut.
const CARRIED_OUT: Duration = Duration::from_millis(30);

/// What happens to the next request that has this word.
#[derive(Clone, Copy)]
pub enum Rule {
    /// It is carried out, and its reply is lost.
    Cut(&'static str),
    /// It never reaches the server.
    Lose(&'static str),
}

struct State {
    /// Nothing goes to the server, and to the client, before these moments.
    up: Instant,
    down: Instant,
    /// What goes to the client goes in small pieces.
    dribbles: Instant,
    refuses: Instant,
    rule: Option<Rule>,
    links: Vec<Arc<Wired>>,
    /// Of the server's side, whose clients are gone without its knowing.
    orphans: Vec<TcpStream>,
    over: bool,
}

pub struct Proxy {
    pub port: u16,
    driver: usize,
    server: u16,
    state: Mutex<State>,
    changed: Condvar,
    book: Arc<Book>,
}

struct Wired {
    opened: u64,
    client: TcpStream,
    server: TcpStream,
    silent: AtomicBool,
    closed: AtomicBool,
}

impl Proxy {
    pub fn start(driver: usize, server: u16, book: Arc<Book>) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let now = Instant::now();
        let proxy = Arc::new(Self {
            port: listener.local_addr()?.port(),
            driver,
            server,
            state: Mutex::new(State {
                up: now,
                down: now,
                dribbles: now,
                refuses: now,
                rule: None,
                links: Vec::new(),
                orphans: Vec::new(),
                over: false,
            }),
            changed: Condvar::new(),
            book,
        });
        let ours = Arc::clone(&proxy);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = locked(&ours.state);
                if state.over {
                    return;
                }
                if state.refuses > Instant::now() {
                    continue;
                }
                let ours = Arc::clone(&ours);
                thread::spawn(move || ours.carry(client));
            }
        });
        Ok(proxy)
    }

    fn carry(self: Arc<Self>, client: TcpStream) {
        self.gate(|state| state.up);
        // A server that is away: the client finds its connection closed.
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.server)) else {
            return;
        };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
            return;
        };
        let wired = Arc::new(Wired {
            opened: now_us(),
            client,
            server,
            silent: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        locked(&self.state).links.push(Arc::clone(&wired));
        let (ours, its) = (Arc::clone(&self), Arc::clone(&wired));
        thread::spawn(move || ours.down(from_server, &its));
        self.up(from_client, &wired);
    }

    fn up(&self, mut from: TcpStream, wired: &Wired) {
        let mut chunk = [0; 65536];
        loop {
            let got = from.read(&mut chunk).unwrap_or(0);
            self.gate(|state| state.up);
            let rule = self.rule_for(&chunk[..got]);
            let lost = matches!(rule, Some(Rule::Lose(_)));
            wired
                .silent
                .fetch_or(matches!(rule, Some(Rule::Cut(_))), SeqCst);
            if got == 0 || lost || (&wired.server).write_all(&chunk[..got]).is_err() {
                return self.close(wired, false);
            }
            if rule.is_some() {
                thread::sleep(CARRIED_OUT);
                return self.close(wired, false);
            }
        }
    }

    fn rule_for(&self, chunk: &[u8]) -> Option<Rule> {
        let mut state = locked(&self.state);
        let (Rule::Cut(word) | Rule::Lose(word)) = state.rule?;
        let word = word.as_bytes();
        chunk.windows(word.len()).find(|part| *part == word)?;
        state.rule.take()
    }

    fn down(&self, mut from: TcpStream, wired: &Wired) {
        let mut chunk = [0; 65536];
        loop {
            let got = from.read(&mut chunk).unwrap_or(0);
            self.gate(|state| state.down);
            if got == 0 {
                return self.close(wired, false);
            }
            if wired.silent.load(SeqCst) {
                continue;
            }
            let dribbles = locked(&self.state).dribbles > Instant::now();
            let size = if dribbles { 7 } else { got };
            for piece in chunk[..got].chunks(size) {
                if (&wired.client).write_all(piece).is_err() {
                    return self.close(wired, false);
                }
                if dribbles {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Waits until the moment that `of` names is past.
    fn gate(&self, of: impl Fn(&State) -> Instant) {
        let mut state = locked(&self.state);
        while !state.over {
            let left = of(&state).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes down that it is closed before anybody is told. An orphan is closed for the client
    /// alone.
    fn close(&self, wired: &Wired, orphan: bool) {
        if wired.closed.swap(true, SeqCst) {
            return;
        }
        self.book.write(&Record::Wire(Wire {
            driver: self.driver,
            opened: wired.opened,
            closed: Some(now_us()),
        }));
        let mut state = locked(&self.state);
        state.links.retain(|link| !link.closed.load(SeqCst));
        match wired.server.try_clone() {
            Ok(server) if orphan => state.orphans.push(server),
            _ => drop(wired.server.shutdown(Shutdown::Both)),
        }
        let _ = wired.client.shutdown(Shutdown::Both);
    }

    pub fn cut(&self, orphan: bool) {
        let links = locked(&self.state).links.clone();
        for link in links {
            self.close(&link, orphan);
        }
    }

    pub fn bury(&self) {
        for orphan in locked(&self.state).orphans.drain(..) {
            let _ = orphan.shutdown(Shutdown::Both);
        }
    }

    pub fn rule(&self, rule: Rule) {
        locked(&self.state).rule = Some(rule);
    }

    pub fn freeze(&self, time: Duration) {
        let mut state = locked(&self.state);
        state.up = Instant::now() + time;
        state.down = state.up;
    }

    pub fn hold_back(&self, time: Duration) {
        locked(&self.state).down = Instant::now() + time;
    }

    pub fn dribble(&self, time: Duration) {
        locked(&self.state).dribbles = Instant::now() + time;
    }

    pub fn refuse(&self, time: Duration) {
        locked(&self.state).refuses = Instant::now() + time;
        self.cut(false);
    }

    /// All is as it should be from now on.
    pub fn heal(&self) {
        let mut state = locked(&self.state);
        let now = Instant::now();
        (state.up, state.down, state.dribbles, state.refuses) = (now, now, now, now);
        state.rule = None;
        drop(state);
        self.changed.notify_all();
        self.bury();
    }

    pub fn end(&self) {
        locked(&self.state).over = true;
        self.changed.notify_all();
        self.cut(false);
        self.bury();
        // The listener learns of it by one more connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}
