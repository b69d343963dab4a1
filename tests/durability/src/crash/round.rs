//! One life of a server under load, its end, and what it is after the restart.

use std::collections::BTreeSet;
use std::io::{self, Error};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;

use super::judge::{judge, Verdict};
use super::look;
use super::{Act, Mode};
use crate::clock::{now_us, pause, within};
use crate::conn;
use crate::item::wall_us;
use crate::load::{Journal, Load};
use crate::node;
use crate::power;
use crate::resp::Value;
use crate::server::Server;

pub struct Outcome {
    pub verdict: Verdict,
    pub requests: u64,
    pub waited: u64,
    /// Keys that another one was given while somebody believed to hold them.
    pub doubles: u64,
    /// Tokens that are not greater than all before.
    pub repeated: u64,
    pub saves: u64,
    /// Bytes that the power cut took.
    pub cut: u64,
}

/// Longer than all leases.
const GRANT_AFTER: u64 = 3_600_000;

pub fn run(dir: &Path, mode: &Mode, seed: u64, ms: u64) -> io::Result<Outcome> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let counter = rng.bool();
    let server = node::start(dir, mode.options)?;
    if counter {
        let _ = conn::ask(server.port, "CONFIG SET rlock.fencing counter");
    }
    let load = Load {
        port: AtomicU16::new(server.port),
        over: AtomicBool::new(false),
        seed,
        name: "k".to_owned(),
        loose: false,
        counter,
    };
    let life = ms / 2 + rng.u64(..ms);
    let (journal, mut lived) = thread::scope(|scope| {
        let clients = load.start(scope);
        let lived = live(server, mode, life, &mut rng);
        load.over.store(true, Ordering::SeqCst);
        let mut journal = Journal::default();
        for client in clients {
            // A panic is a fault of this program.
            journal.add(client.join().expect("a client"));
        }
        (journal, lived)
    });
    let cut = if mode.power { power::cut(dir)? } else { 0 };
    let again = node::start(dir, &again_options(mode))?;
    let mut outcome = compare(&journal, &lived, &again, mode, counter)?;
    outcome.saves = lived.saves;
    outcome.cut = cut;
    let findings = &mut outcome.verdict.findings;
    findings.append(&mut lived.faults);
    findings.extend(
        journal
            .strange
            .iter()
            .map(|text| format!("strange: {text}")),
    );
    findings.extend(node::faults(&again));
    Ok(outcome)
}

/// What was switched on while it ran is on when it starts again.
fn again_options(mode: &Mode) -> String {
    let options = match mode.act {
        Act::SwitchOn => "--appendonly yes --appendfsync always",
        _ => mode.options,
    };
    match mode.waits {
        true => format!("{options} --rlock.grant-after {GRANT_AFTER}"),
        false => options.to_owned(),
    }
}

struct Lived {
    killed: u64,
    /// What was acknowledged before is to be there.
    floor: u64,
    saves: u64,
    faults: Vec<String>,
}

/// Lives for so many ms, and is killed.
fn live(server: Server, mode: &Mode, life: u64, rng: &mut fastrand::Rng) -> Lived {
    let port = server.port;
    let mut lived = Lived {
        killed: 0,
        floor: if mode.strict { u64::MAX } else { 0 },
        saves: 0,
        faults: Vec::new(),
    };
    let end = now_us() + life * 1000;
    match mode.act {
        Act::Nothing => pause(life),
        Act::SwitchOn => {
            pause(life / 3);
            let _ = conn::ask(port, "CONFIG SET appendonly yes");
            if !within(15_000, || has_rewritten(port)) {
                lived.floor = 0;
            }
            lived.saves += 1;
            pause(rng.u64(..life));
        }
        Act::Save | Act::Rewrite => {
            let line = match mode.act {
                Act::Save => "BGSAVE",
                _ => "BGREWRITEAOF",
            };
            while now_us() < end || lived.saves == 0 && now_us() < end + 15_000_000 {
                let begun = wall_us();
                let _ = conn::ask(port, line);
                // The kill comes in the middle of one too.
                let done = || now_us() > end || is_saved(port);
                if within(15_000, done) && is_saved(port) {
                    lived.saves += 1;
                    lived.floor = lived.floor.max(begun);
                }
                pause(rng.u64(..100));
            }
            let _ = conn::ask(port, line);
            pause(rng.u64(..30));
        }
    }
    lived.faults = node::faults(&server);
    lived.killed = wall_us();
    drop(server);
    lived
}

fn is_saved(port: u16) -> bool {
    let is = |field: &str, value: &str| node::info(port, "persistence", field) == value;
    is("rdb_bgsave_in_progress", "0")
        && is("rdb_last_bgsave_status", "ok")
        && is("aof_rewrite_in_progress", "0")
}

fn has_rewritten(port: u16) -> bool {
    let is = |field: &str, value: &str| node::info(port, "persistence", field) == value;
    is("aof_enabled", "1")
        && is("aof_rewrite_in_progress", "0")
        && is("aof_rewrite_scheduled", "0")
        && is("aof_last_bgrewrite_status", "ok")
}

fn compare(
    journal: &Journal,
    lived: &Lived,
    again: &Server,
    mode: &Mode,
    counter: bool,
) -> io::Result<Outcome> {
    let gone = |_| Error::other(format!("it does not answer: {}", again.log()));
    let locks = journal.items.iter().map(|item| (item.db, item.key.clone()));
    let locks: BTreeSet<(u8, String)> = locks.collect();
    let locks: Vec<(u8, String)> = locks.into_iter().collect();
    let looked = look::look(again.port, &locks).map_err(gone)?;
    let mut verdict = judge(&journal.items, &looked, lived.floor, lived.killed);
    if lived.floor == u64::MAX {
        counters(journal, again.port, &mut verdict).map_err(gone)?;
    }
    if counter {
        let _ = conn::ask(again.port, "CONFIG SET rlock.fencing counter");
    }
    // Others come, who know nothing of all this.
    let line = |at: usize, key: &str| format!("RLOCK.ACQUIRE {key} other-{at} 60000");
    let replies = look::ask(again.port, &locks, line).map_err(gone)?;
    let steps = journal.items.iter().flat_map(|item| &item.steps);
    let most = steps.filter_map(|step| step.token).max().unwrap_or(0);
    let (mut doubles, mut repeated) = (0, 0);
    for (lock, reply) in locks.iter().zip(&replies) {
        let Value::Int(token) = &reply.value else {
            continue;
        };
        if *token <= most {
            repeated += 1;
            let text = format!("token {token} of {lock:?} after {most}");
            verdict.findings.push(text);
        }
        let count = verdict.believed.get(lock).copied().unwrap_or(0);
        doubles += count;
        if count > 0 && (lived.floor == u64::MAX || mode.waits) {
            verdict.findings.push(format!("held twice: {lock:?}"));
        }
    }
    Ok(Outcome {
        verdict,
        requests: journal.requests,
        waited: journal.waited,
        doubles,
        repeated,
        saves: 0,
        cut: 0,
    })
}

/// No fencing counter is behind what it was said to be.
fn counters(journal: &Journal, port: u16, verdict: &mut Verdict) -> Result<(), conn::Gone> {
    let locks: Vec<(u8, String)> = journal.counters.keys().cloned().collect();
    let line = |_: usize, key: &str| format!("GET redisson_lock_token:{{{key}}}");
    let replies = look::ask(port, &locks, line)?;
    for (lock, reply) in locks.iter().zip(&replies) {
        let found = reply.value.text().and_then(|text| text.parse::<i64>().ok());
        let least = journal.counters[lock];
        if found.is_none_or(|found| found < least) {
            let text = format!("the counter of {lock:?} is {found:?}, and was {least}");
            verdict.findings.push(text);
        }
    }
    Ok(())
}
