//! A reshard under load, as `redis-cli --cluster reshard` does it: of some hundred locks
//! with three readers each none is broken, and the reshard succeeds.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::Mutex;
use std::thread;

use redis::Value;

use crate::support::{
    error, eventually_within, id, keys_in_slot, poll, slot_of, two_nodes, Ask, Over, RawClient,
    Request, Server, BOUND, LONG,
};

/// So many of the first slots move.
const SLOTS: u16 = 40;
const LOCKS: usize = 200;
const PLAIN: usize = 40;
const READERS: [&str; 3] = ["a", "b", "c"];

/// Names whose slots are among those that move.
fn names(prefix: &str, count: usize) -> Vec<String> {
    let all = (0..).map(|n| format!("{prefix}:{n}"));
    all.filter(|name| slot_of(name) < SLOTS)
        .take(count)
        .collect()
}

/// A client of a cluster: it goes where it is sent, and tries again when told to.
struct Client<'a> {
    nodes: [(&'a Server, RawClient); 2],
    at: usize,
}

impl<'a> Client<'a> {
    fn new(nodes: [&'a Server; 2]) -> Self {
        let nodes = nodes.map(|node| (node, node.raw()));
        Self { nodes, at: 0 }
    }

    fn of(&self, port: u16) -> usize {
        let found = self.nodes.iter().position(|(node, _)| node.port() == port);
        found.expect("one of the two")
    }
}

impl Ask for Client<'_> {
    fn ask<R: Request + ?Sized>(&mut self, request: &R) -> Value {
        let answer = || {
            let reply = self.nodes[self.at].1.ask(request);
            match redirection(&reply) {
                Some(("ASK", port)) => {
                    let to = self.of(port);
                    let there = &mut self.nodes[to].1;
                    there.send_all(&["ASKING".args(), request.args()]);
                    let reply = there.read_many(2).remove(1);
                    redirection(&reply).is_none().then_some(reply)
                }
                Some(("MOVED", port)) => {
                    self.at = self.of(port);
                    None
                }
                Some(_) => None,
                None => Some(reply),
            }
        };
        poll(BOUND, answer).unwrap_or_else(|| panic!("{}: no answer", request.shown()))
    }
}

/// Where a client is to ask instead, if it is sent anywhere; port 0: here again.
fn redirection(reply: &Value) -> Option<(&'static str, u16)> {
    let Value::ServerError(_) = reply else {
        return None;
    };
    let line = error(reply.clone());
    let port = line.rsplit(':').next().and_then(|port| port.parse().ok());
    match line.split(' ').next() {
        Some("ASK") => Some(("ASK", port?)),
        Some("MOVED") => Some(("MOVED", port?)),
        Some("TRYAGAIN") => Some(("TRYAGAIN", 0)),
        Some("CLUSTERDOWN") => Some(("CLUSTERDOWN", 0)),
        _ => None,
    }
}

/// What goes on while the slots move, and what was seen of it.
#[derive(Default)]
struct Load {
    over: AtomicBool,
    /// Read locks that let a writer in or lost a reader.
    broken: Mutex<BTreeSet<String>>,
    turns: AtomicI64,
}

impl Load {
    fn is_broken(&self, lock: &str, why: &Value) {
        let mut broken = self.broken.lock().expect("the list");
        broken.insert(format!("{lock}: {why:?}"));
    }

    /// Readers renew, and writers try in vain.
    fn read(&self, mut client: Client<'_>, locks: &[String], begin: usize) {
        for turn in begin.. {
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let lock = &locks[turn % locks.len()];
            let reader = READERS[turn % READERS.len()];
            let renewed = client.ask(&format!("RLOCK.RENEW {lock} {reader} {LONG} READ"));
            if renewed != Value::Int(1) {
                self.is_broken(lock, &renewed);
            }
            let tried = client.ask(&format!("RLOCK.ACQUIRE {lock} w{begin} 50 WRITE"));
            if tried != Value::Nil {
                self.is_broken(lock, &tried);
            }
            self.turns.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Plain locks go from hand to hand; each token is greater than the one before.
    fn hold(&self, mut client: Client<'_>, locks: &[String], last: &[AtomicI64], owner: usize) {
        for turn in owner * 7.. {
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let at = turn % locks.len();
            let lock = &locks[at];
            let Value::Int(token) = client.ask(&format!("RLOCK.ACQUIRE {lock} o{owner} {LONG}"))
            else {
                continue;
            };
            if last[at].swap(token, Ordering::SeqCst) >= token {
                self.is_broken(lock, &Value::Int(token));
            }
            let released = client.ask(&format!("RLOCK.RELEASE {lock} o{owner}"));
            if released != Value::Int(0) {
                self.is_broken(lock, &released);
            }
            self.turns.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Moves the first slots by the tool that operators have; `false`: there is none.
fn by_redis_cli(one: &Server, two: &Server, pipeline: &str) -> bool {
    let [from, to] = [one, two].map(|node| id(&mut node.raw()));
    let run = Command::new("redis-cli")
        .args(["--cluster", "reshard", &format!("127.0.0.1:{}", one.port())])
        .args(["--cluster-from", &from, "--cluster-to", &to])
        .args(["--cluster-slots", &SLOTS.to_string(), "--cluster-yes"])
        .args(["--cluster-pipeline", pipeline])
        .stdin(Stdio::null())
        .output();
    let Ok(output) = run else {
        return false;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let tail = said.lines().rev().take(5).collect::<Vec<_>>().join("\n");
    assert!(output.status.success(), "{}: {tail}", output.status);
    true
}

/// What that tool does.
fn by_hand(one: &Server, two: &Server) {
    let (mut here, mut there) = (one.raw(), two.raw());
    let [from, to] = [id(&mut here), id(&mut there)];
    for slot in 0..SLOTS {
        there.ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {from}"));
        here.ok(&format!("CLUSTER SETSLOT {slot} MIGRATING {to}"));
        loop {
            let keys = keys_in_slot(&mut here, i64::from(slot));
            if keys.is_empty() {
                break;
            }
            for ten in keys.chunks(10) {
                let (port, keys) = (two.port(), ten.join(" "));
                let line = format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 KEYS {keys}");
                let line = line.replace("\"\"", "%");
                let args: Vec<&str> = line
                    .split(' ')
                    .map(|word| if word == "%" { "" } else { word })
                    .collect();
                let reply = here.ask(&args);
                let gone = matches!(&reply, Value::SimpleString(text) if text == "NOKEY");
                assert!(reply == Value::Okay || gone, "{reply:?}");
            }
        }
        for client in [&mut there, &mut here] {
            client.ok(&format!("CLUSTER SETSLOT {slot} NODE {to}"));
        }
    }
}

/// Moves the first slots under load, in whatever way, and counts what it breaks.
#[track_caller]
pub fn reshard(one: &Server, two: &Server, fencing: &str, by: impl FnOnce(&Server, &Server)) {
    for node in [one, two] {
        node.raw()
            .ok(&format!("CONFIG SET rlock.fencing {fencing}"));
    }
    let (locks, plain) = (names("doc", LOCKS), names("job", PLAIN));
    let last: Vec<_> = plain.iter().map(|_| AtomicI64::new(0)).collect();
    let mut client = Client::new([one, two]);
    for lock in &locks {
        for reader in READERS {
            client.int(&format!("RLOCK.ACQUIRE {lock} {reader} {LONG} READ"));
        }
    }
    let load = Load::default();
    thread::scope(|scope| {
        for begin in [0, 100] {
            let (load, locks) = (&load, &locks);
            scope.spawn(move || load.read(Client::new([one, two]), locks, begin));
        }
        for owner in [0, 1] {
            let (load, plain, last) = (&load, &plain, &last);
            scope.spawn(move || load.hold(Client::new([one, two]), plain, last, owner));
        }
        let _over = Over(&load.over);
        eventually_within(BOUND, "it has begun", || {
            load.turns.load(Ordering::SeqCst) > 100
        });
        by(one, two);
        let moved = load.turns.load(Ordering::SeqCst);
        eventually_within(BOUND, "it goes on", || {
            load.turns.load(Ordering::SeqCst) > moved + 100
        });
    });
    let mut there = two.raw();
    for lock in &locks {
        let held = there.held_by(lock);
        if held != "a read 1, b read 1, c read 1" {
            load.is_broken(lock, &Value::SimpleString(held));
        }
    }
    let broken = load.broken.into_inner().expect("the list");
    let of: BTreeSet<_> = broken.iter().filter_map(|b| b.split(": ").next()).collect();
    assert!(
        of.is_empty(),
        "{} of {} are broken: {broken:?}",
        of.len(),
        LOCKS + PLAIN
    );
}

fn reshard_by_redis_cli(fencing: &str, pipeline: &str) {
    let (one, two) = two_nodes();
    reshard(&one, &two, fencing, |one, two| {
        if !by_redis_cli(one, two, pipeline) {
            eprintln!("no redis-cli here: the test moves the slots itself");
            by_hand(one, two);
        }
    });
}

#[test]
fn a_reshard_breaks_no_lock() {
    reshard_by_redis_cli("clock", "10");
}

#[test]
fn a_reshard_key_by_key_breaks_no_lock() {
    reshard_by_redis_cli("clock", "1");
}

#[test]
fn a_reshard_of_locks_with_counters_succeeds() {
    reshard_by_redis_cli("counter", "10");
}

#[test]
fn slots_that_are_moved_without_a_tool_break_no_lock() {
    let (one, two) = two_nodes();
    reshard(&one, &two, "counter", by_hand);
}
