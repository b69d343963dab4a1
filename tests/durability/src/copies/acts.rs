//! What is done to the servers while the load goes on.

use std::collections::BTreeMap;
use std::io;

use super::set::Set;
use crate::clock::pause;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    Attach,
    Chain,
    Detach,
    KillReplicas,
    KillMasterLink,
    CutWire,
    StopReplica,
    RestartReplica,
    Aof,
    Bgsave,
    Save,
    Rewrite,
    Backlog,
    DropBacklog,
    Diskless,
    Fencing,
    Promote,
    RestartMaster,
    FlushAll,
    SwapDb,
}

/// How often each is done, of the sum. DEBUG RELOAD is not among them: what runs out during
/// it the server forgets without a word to its replicas, whoever wrote it.
const WEIGHTS: [(Act, u32); 20] = [
    (Act::Attach, 30),
    (Act::Chain, 8),
    (Act::Detach, 12),
    (Act::KillReplicas, 14),
    (Act::KillMasterLink, 8),
    (Act::CutWire, 10),
    (Act::StopReplica, 5),
    (Act::RestartReplica, 4),
    (Act::Aof, 12),
    (Act::Bgsave, 8),
    (Act::Save, 3),
    (Act::Rewrite, 8),
    (Act::Backlog, 8),
    (Act::DropBacklog, 6),
    (Act::Diskless, 8),
    (Act::Fencing, 3),
    (Act::Promote, 5),
    (Act::RestartMaster, 3),
    (Act::FlushAll, 1),
    (Act::SwapDb, 2),
];

pub type Counts = BTreeMap<Act, u64>;

pub fn draw(rng: &mut fastrand::Rng) -> Act {
    let sum: u32 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let mut at = rng.u32(..sum);
    for (act, weight) in WEIGHTS {
        if at < weight {
            return act;
        }
        at -= weight;
    }
    Act::Attach
}

/// Does it; the server that it was done to. None: there is nothing to do it to.
pub fn act(set: &mut Set, act: Act, rng: &mut fastrand::Rng) -> io::Result<Option<usize>> {
    let count = set.nodes.len();
    let any = rng.usize(..count);
    let other = (set.master + rng.usize(1..count)) % count;
    let attached = set.nodes[other].of.is_some();
    let master = set.master;
    let done = match act {
        Act::Attach => {
            set.attach(other, master);
            other
        }
        Act::Chain => {
            let third = count - master - other;
            // Not in a ring.
            if set.nodes[third].of != Some(master) {
                return Ok(None);
            }
            set.attach(other, third);
            other
        }
        Act::Detach if attached => {
            set.detach(other);
            // From now on it has a history of its own.
            for number in 0..rng.u8(..20) {
                set.nodes[other].say(&format!("RLOCK.ACQUIRE alone{number} me 400000"));
            }
            other
        }
        Act::RestartReplica => {
            set.restart(other, rng)?;
            other
        }
        Act::RestartMaster => {
            // Perhaps with a file by which replicas can go on where they were.
            if rng.bool() {
                set.master().say("SAVE");
            }
            set.restart(master, rng)?;
            master
        }
        Act::Promote if attached && set.follows(other) => {
            promote(set, other, rng);
            other
        }
        Act::DropBacklog => {
            drop_backlog(set, rng);
            master
        }
        Act::KillReplicas | Act::KillMasterLink | Act::CutWire | Act::StopReplica => {
            return Ok(link(set, act, (any, other), rng));
        }
        _ => return Ok(setting(set, act, any, rng)),
    };
    Ok(Some(done))
}

/// What happens between servers: to any, or to one that is no master.
fn link(
    set: &Set,
    act: Act,
    (any, other): (usize, usize),
    rng: &mut fastrand::Rng,
) -> Option<usize> {
    let done = match act {
        Act::KillReplicas => {
            set.nodes[any].say("CLIENT KILL TYPE replica");
            any
        }
        Act::KillMasterLink if set.nodes[other].of.is_some() => {
            set.nodes[other].say("CLIENT KILL TYPE master");
            other
        }
        Act::CutWire => {
            set.nodes[any].wire.cut();
            pause(rng.u64(..120));
            set.nodes[any].wire.heal();
            any
        }
        Act::StopReplica if set.nodes[other].of.is_some() => {
            let server = set.nodes[other].server();
            server.signal(libc::SIGSTOP);
            pause(rng.u64(10..250));
            server.signal(libc::SIGCONT);
            other
        }
        _ => return None,
    };
    Some(done)
}

fn setting(set: &mut Set, act: Act, any: usize, rng: &mut fastrand::Rng) -> Option<usize> {
    let master = set.master;
    let mut choose = |words: &[&str]| words[rng.usize(..words.len())].to_owned();
    let (number, line) = match act {
        Act::Aof if !set.two_channels => {
            let aof = choose(&["yes", "no"]);
            set.nodes[any].aof = aof == "yes";
            (any, format!("CONFIG SET appendonly {aof}"))
        }
        Act::Bgsave => (any, "BGSAVE".to_owned()),
        Act::Save => (any, "SAVE".to_owned()),
        Act::Rewrite => (any, "BGREWRITEAOF".to_owned()),
        Act::Backlog => {
            let size = choose(&["16kb", "64kb", "1mb"]);
            (any, format!("CONFIG SET repl-backlog-size {size}"))
        }
        Act::Diskless => {
            let line = choose(&[
                "CONFIG SET repl-diskless-sync yes",
                "CONFIG SET repl-diskless-sync no",
                "CONFIG SET repl-diskless-load disabled",
                "CONFIG SET repl-diskless-load swapdb",
                // Not on every server.
                "CONFIG SET repl-rdb-channel yes",
                "CONFIG SET repl-rdb-channel no",
            ]);
            (any, line)
        }
        Act::Fencing => {
            let fencing = choose(&["clock", "counter"]);
            (master, format!("CONFIG SET rlock.fencing {fencing}"))
        }
        Act::FlushAll => (master, "FLUSHALL".to_owned()),
        Act::SwapDb => (master, "SWAPDB 0 1".to_owned()),
        _ => return None,
    };
    set.nodes[number].say(&line);
    Some(number)
}

/// The other one is the master from now on; what the old one writes meanwhile is lost.
fn promote(set: &mut Set, other: usize, rng: &mut fastrand::Rng) {
    let old = set.master;
    set.detach(other);
    set.master = other;
    if rng.bool() {
        pause(rng.u64(..50));
    }
    set.attach(old, other);
    let third = set.nodes.len() - old - other;
    if rng.bool() && set.nodes[third].of.is_some() {
        set.attach(third, other);
    }
}

/// There is no AOF, and nobody listens for so long that the server forgets that anybody did.
fn drop_backlog(set: &mut Set, rng: &mut fastrand::Rng) {
    for number in 0..set.nodes.len() {
        if number != set.master {
            set.detach(number);
        }
        set.nodes[number].say("CONFIG SET repl-backlog-ttl 1");
    }
    let master = set.master;
    set.nodes[master].aof = false;
    set.nodes[master].say("CONFIG SET appendonly no");
    pause(1_200 + rng.u64(..1_500));
    set.master().say("CONFIG SET repl-backlog-ttl 3600");
}
