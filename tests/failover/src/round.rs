//! One round: servers, load, the fault, and what came of it.

use std::io::{self, Error};
use std::path::Path;
use std::thread;

use crate::block::Waiter;
use crate::clock::{now_us, pause_until, within};
use crate::conn::{ask, Conn};
use crate::fault::Fault;
use crate::first::First;
use crate::judge::{judge, Verdict};
use crate::resp::Value;
use crate::rule::Rule;
use crate::session::Session;
use crate::set::Set;
use crate::worker::Worker;
use crate::world::{Notes, Times, World};

const BLOCKED: usize = 90;
const SESSIONS: usize = 3;
const QUEUED: usize = 60;

#[derive(Clone, Copy)]
pub struct Options {
    /// ms that what the master writes is under way.
    pub delay: u64,
    /// For how long Sentinel bears with silence, ms.
    pub down_after: u64,
    pub times: Times,
    pub bare: bool,
    /// At the end all waits must be answered, and all locks be taken once more.
    pub take: bool,
}

pub struct Outcome {
    pub notes: Notes,
    pub verdict: Verdict,
    pub fault: u64,
    /// The old master learnt that it is one no more.
    pub known: bool,
    /// Waits without an answer long after their time.
    pub unanswered: i64,
    /// Locks that nobody can have after their leases; of those looked at.
    pub stuck: Option<(Vec<String>, usize)>,
    /// Lines of the servers' logs that tell of a fault of theirs.
    pub faults: Vec<String>,
}

/// None where the server has no such command.
pub fn run(dir: &Path, fault: Fault, rule: Rule, options: Options) -> io::Result<Option<Outcome>> {
    let sentinels = fault.has_sentinels().then_some(options.down_after);
    let set = Set::start(dir, rule, options.delay, sentinels)?;
    let world = World::new(set.ways(), rule, options.times);
    let (waiters, sessions) = all_who_wait(&world, options.bare);
    let queued = sessions
        .iter()
        .flat_map(|session| (0..QUEUED).map(|tag| session.key(tag)));
    let keys: Vec<String> = waiters
        .iter()
        .map(|one| one.key.clone())
        .chain(queued)
        .collect();
    let gone = |gone| Error::other(format!("before the fault: {gone:?}"));
    let mut first = First::take(&world, keys).map_err(gone)?;
    let (at, known) = thread::scope(|scope| {
        let world = &world;
        for waiter in &waiters {
            scope.spawn(|| waiter.run());
        }
        for session in &sessions {
            scope.spawn(|| session.run());
        }
        let all_wait = || waiting(world.ways.servers[0]) == Some(BLOCKED + SESSIONS * QUEUED);
        let ready = within(30_000, all_wait);
        for id in 0..7 {
            let worker = Worker {
                world,
                id,
                watchdog: id % 2 == 1,
            };
            scope.spawn(move || worker.run(id < 4));
        }
        let moment = now_us() + 1_000_000;
        let planned = first.plan(moment);
        if planned.is_ok() {
            scope.spawn(move || first.run(world, moment));
        }
        pause_until(moment);
        // What follows the command may come before its reply.
        world.set_fault(now_us());
        let at = fault.begin(&set).filter(|_| ready && planned.is_ok());
        at.into_iter().for_each(|at| world.set_fault(at));
        let known = at.is_some() && fault.finish(&set);
        world.be_quiet();
        if options.take {
            let times = options.times;
            within(times.wait + times.grace, || world.unanswered() == 0);
        }
        world.stop();
        // Who waits for the reply of one that stands still would never come to the end.
        set.master().signal(libc::SIGCONT);
        (at, known)
    });
    let Some(at) = at else { return Ok(None) };
    let stuck = options.take.then(|| take_all(&world));
    let mut outcome = sum(&set, &world, at, stuck);
    outcome.known = known;
    Ok(Some(outcome))
}

fn all_who_wait(world: &World, bare: bool) -> (Vec<Waiter<'_>>, Vec<Session<'_>>) {
    let sessions = (0..SESSIONS).map(|name| Session {
        world,
        name: name.to_string(),
        keys: QUEUED,
        bare,
    });
    let waiters = (0..BLOCKED).map(|at| Waiter {
        world,
        key: format!("w{at}"),
        owner: format!("b{at}"),
        watchdog: at % 2 == 1,
    });
    (waiters.collect(), sessions.collect())
}

fn sum(set: &Set, world: &World, fault: u64, stuck: Option<(Vec<String>, usize)>) -> Outcome {
    let notes = std::mem::take(&mut *world.notes());
    let servers = set.servers.iter().chain(&set.sentinels);
    Outcome {
        verdict: judge(&notes.holds, &notes.closed, fault),
        notes,
        fault,
        known: false,
        unanswered: world.unanswered(),
        stuck,
        faults: servers.flat_map(|server| faults(&server.log())).collect(),
    }
}

fn faults(log: &str) -> Vec<String> {
    const SIGNS: [&str; 4] = ["rlock: a fault", "panicked at", "BUG REPORT", "ASSERTION"];
    let lines = log.lines();
    let bad = lines.filter(|line| SIGNS.iter().any(|sign| line.contains(sign)));
    bad.map(str::to_owned).collect()
}

fn waiting(port: u16) -> Option<usize> {
    let info = ask(port, "INFO rlock").ok()?;
    let mut lines = info.text()?.lines();
    lines.find_map(|line| line.strip_prefix("rlock_waiting:")?.trim().parse().ok())
}

/// After the leases every key must be there for the taking, at the new master.
fn take_all(world: &World) -> (Vec<String>, usize) {
    let mut left: Vec<String> = {
        let notes = world.notes();
        notes.holds.iter().map(|hold| hold.key.clone()).collect()
    };
    left.sort();
    left.dedup();
    let all = left.len();
    let done = within(2 * world.times.lease + 15_000, || {
        let conn = world.ways.new_master().map(Conn::open);
        if let Some(Ok(mut conn)) = conn {
            left = left
                .chunks(500)
                .flat_map(|keys| refused(&mut conn, keys))
                .collect();
        }
        left.is_empty()
    });
    assert!(done || !left.is_empty());
    (left, all)
}

fn refused(conn: &mut Conn, keys: &[String]) -> Vec<String> {
    let line = |key: &String| format!("RLOCK.ACQUIRE {key} taker 120000");
    let lines: Vec<String> = keys.iter().map(line).collect();
    if conn.send(&lines).is_err() {
        return keys.to_vec();
    }
    let taken: Vec<bool> = keys
        .iter()
        .map(|_| matches!(conn.next(now_us() + 5_000_000), Ok(Value::Int(_))))
        .collect();
    let pairs = keys.iter().zip(taken);
    pairs
        .filter(|(_, taken)| !taken)
        .map(|(key, _)| key.clone())
        .collect()
}
