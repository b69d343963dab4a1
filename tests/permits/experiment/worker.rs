//! One process of the experiment: ten clients, each on a connection of its own, that take
//! permits, hold them for a moment and give them back, and write down when.

use std::env;
use std::io::stdin;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use redis::Value;

use super::log::{self, moment, Event, Granted, Log};
use super::{CLIENTS_EACH, KEY, LIMIT};
use crate::support::{
    code, now_ms, pass, pong, spawn, token, Ask, Process, Random, RawClient, Server,
};

/// The server's port, the number of the process, the directory.
const WORKER: &str = "RLOCK_TEST_PERMITS_WORKER";

/// Far beyond the test: only the close of its connection frees what a killed one held.
const WATCHED_MS: i64 = 600_000;

/// Of those without WATCHDOG.
const LEASE_MS: i64 = 1000;

/// Longer than all others need for their turns, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(100);

/// The process. It begins when it is told until when to go on.
#[test]
#[ignore = "the experiment runs it, in a process of its own"]
fn worker() {
    let Ok(order) = env::var(WORKER) else {
        return;
    };
    let mut parts = order.splitn(3, ' ');
    let mut next = || parts.next().expect("port number directory");
    let port: u16 = next().parse().expect("a port");
    let number: usize = next().parse().expect("a number");
    let log = Log::open(&log::path(Path::new(next()), number));
    let connect = |_| RawClient::to(port).expect("connect");
    let clients: Vec<RawClient> = (0..CLIENTS_EACH).map(connect).collect();
    let mut line = String::new();
    stdin().read_line(&mut line).expect("until when");
    let until: i64 = line.trim().parse().expect("a moment");
    thread::scope(|scope| {
        for (nth, client) in clients.into_iter().enumerate() {
            let log = &log;
            let number = number * CLIENTS_EACH + nth;
            let random = Random::new(number as u64);
            let mut worker = Worker {
                number,
                client,
                random,
                log,
            };
            scope.spawn(move || {
                for turn in 0.. {
                    if moment() >= until {
                        break;
                    }
                    worker.take_turn(turn);
                }
            });
        }
    });
}

/// Starts such a process; what it is told comes by its input.
pub fn start(server: &Server, number: usize) -> Process {
    let mut command = Command::new(env::current_exe().expect("this program"));
    let dir = server.dir().display();
    command
        .args(["--exact", "permits::experiment::worker::worker"])
        .args(["--ignored", "--nocapture"])
        .env(WORKER, format!("{} {number} {dir}", server.port()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    Process(spawn(command).expect("a worker"))
}

struct Worker<'a> {
    number: usize,
    client: RawClient,
    random: Random,
    log: &'a Log,
}

impl Worker<'_> {
    fn take_turn(&mut self, turn: usize) {
        let id = (self.number, turn);
        let owner = format!("c{}-{turn}", self.number);
        let Some(granted) = self.ask(turn, &owner) else {
            return;
        };
        self.log.put(id, Event::Granted(granted));
        if let Some(lease) = granted.lease {
            // From now on it is known to the test how long the lease lasts at least.
            let from = moment();
            let renew = format!("RLOCK.RENEW {KEY} {owner} {lease} PERMITS");
            match self.client.ask(&renew) {
                Value::Int(_) => self.log.put(id, Event::Renewed(from)),
                error => assert_eq!(code(&error), "NOTHELD", "{error:?}"),
            }
        }
        match self.random.below(6) {
            0 => self.client.in_step(),
            ms => pass(now_ms() + ms as i64),
        }
        self.log.put(id, Event::Releasing(moment()));
        self.release(&owner, &granted, id);
    }

    /// Asks for some permits and waits for them. None: it had no patience.
    fn ask(&mut self, turn: usize, owner: &str) -> Option<Granted> {
        let permits = 1 + self.random.below(3) as i64;
        let lease = self.random.one_in(4).then_some(LEASE_MS);
        // Some leave the queue; but each is granted something.
        let patience = match turn > 0 && self.random.one_in(16) {
            true => 20,
            false => 0,
        };
        let watched = if lease.is_none() { "WATCHDOG" } else { "" };
        let ms = lease.unwrap_or(WATCHED_MS);
        let acquire = format!(
            "RLOCK.ACQUIRE {KEY} {owner} {ms} LIMIT {LIMIT} PERMITS {permits} BLOCK {patience} {watched}"
        );
        let sent = moment();
        // Both requests come in one read, and replies leave after all of it was run:
        // whoever has that to PING knows that the other one waits.
        self.client.send_all(&["PING", &acquire]);
        assert_eq!(self.client.read(), pong());
        let queued = moment();
        let reply = self.client.read_within(PATIENCE);
        let seen = moment();
        match reply.unwrap_or_else(|| panic!("{owner} waits for ever")) {
            Value::Nil if patience > 0 => None,
            reply => Some(Granted {
                permits,
                lease,
                sent,
                queued,
                seen,
                token: token(reply),
            }),
        }
    }

    /// Gives all back, in one of the ways there are.
    fn release(&mut self, owner: &str, granted: &Granted, id: log::Id) {
        let release = format!("RLOCK.RELEASE {KEY} {owner} PERMITS");
        let requests = match self.random.below(3) {
            0 => vec![format!("{release} ALL")],
            1 => vec![format!("{release} {}", granted.permits)],
            _ => vec![release; granted.permits as usize],
        };
        match self.client.ask_all(&requests).pop() {
            Some(Value::Int(0)) => self.log.put(id, Event::Released),
            Some(error) if granted.lease.is_some() => {
                assert_eq!(code(&error), "NOTHELD", "{error:?}");
                self.log.put(id, Event::TooLate);
            }
            other => panic!("{owner} held its permits: {other:?}"),
        }
    }
}
