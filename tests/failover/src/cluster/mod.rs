//! A cluster under load whose slots and masters move.

mod client;
mod judge;
mod keepers;
mod load;
mod moves;
mod nodes;
mod session;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;

use crate::clock::{pause, within};
use crate::conn::ask;
use crate::resp::Value;
use client::Client;
use load::{name, Load, KEYS, LEASE};
use moves::{Move, MOVES};
use nodes::Nodes;

const CLIENTS: usize = 24;
const KEEPERS: usize = 2;
/// For how long what a master writes is under way to its replica, where masters are
/// replaced, ms. With it a reshard by redis-cli would take minutes.
const DELAY: u64 = 15;

struct Outcome {
    counts: BTreeMap<String, u64>,
    held: usize,
    doubles: Vec<String>,
    stuck: Vec<String>,
    made: io::Result<()>,
}

/// Each move, and those that forget under both rules.
pub fn run(dir: &Path, rounds: u32, only: Option<&str>) -> io::Result<bool> {
    let mut good = true;
    println!("| move | rule | round | requests | grants | sent on (MOVED, ASK, TRYAGAIN, others) | long holds, asked for at the new master | double holds | stuck | never answered | lost, not told | channels moved |\n|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (what, long) in MOVES {
        let short = format!("{what:?}").to_lowercase();
        if only.is_some_and(|only| only != short) {
            continue;
        }
        let rules: &[bool] = match what.forgets() {
            true => &[false, true],
            false => &[false],
        };
        for with_wait in rules {
            for round in 0..rounds {
                let dir = dir.join(format!("{short}-{with_wait}-{round}"));
                let outcome = one(&dir, what, *with_wait)?;
                tell(long, *with_wait, round, &outcome);
                good &= outcome.stuck.is_empty()
                    && (what.forgets() && !with_wait || outcome.doubles.is_empty());
                let _ = fs::remove_dir_all(&dir);
            }
        }
    }
    Ok(good)
}

fn one(dir: &Path, what: Move, with_wait: bool) -> io::Result<Outcome> {
    let replaces = what.replaces_masters();
    let nodes = Nodes::start(dir, if replaces { DELAY } else { 0 })?;
    let load = Load::new(nodes.ports(), with_wait);
    let made = thread::scope(|scope| {
        let load = &load;
        for id in 0..CLIENTS {
            scope.spawn(move || load.work(id));
        }
        if replaces {
            for id in 0..KEEPERS {
                scope.spawn(move || keepers::keep(load, id));
            }
        }
        pause(1500);
        let made = what.make(&nodes, load);
        pause(1500);
        load.stop();
        made
    });
    let stuck = stuck(&load, &nodes);
    let notes = std::mem::take(&mut *load.notes());
    Ok(Outcome {
        counts: notes.counts,
        held: notes.held.len(),
        doubles: judge::doubles(&notes.held),
        stuck,
        made,
    })
}

/// Keys that nobody can have when all leases are over, with what each node says of them.
fn stuck(load: &Load, nodes: &Nodes) -> Vec<String> {
    let mut client = Client::new(load);
    let mut left: Vec<String> = (0..KEYS).map(name).collect();
    within(LEASE + 20_000, || {
        left.retain(|key| {
            let line = format!("RLOCK.ACQUIRE {key} taker 100000 ONCE");
            let answer = client.call(key, &line, 5_000);
            !answer.is_some_and(|answer| matches!(answer.value, Value::Int(_)))
        });
        left.is_empty()
    });
    let said = |key: &String| {
        let ports = nodes.servers.iter().map(|server| server.port);
        let said = ports.map(|port| format!("{port}: {:?}", ask(port, &format!("PTTL {key}"))));
        format!("{key}: {:?}", said.collect::<Vec<_>>())
    };
    left.iter().map(said).collect()
}

fn tell(long: &str, with_wait: bool, round: u32, outcome: &Outcome) {
    let count = |what: &str| outcome.counts.get(what).copied().unwrap_or(0);
    let rule = if with_wait { "WAIT 1" } else { "none" };
    let others = ["CLUSTERDOWN", "closed", "UNBLOCKED", "READONLY", "REDIRECT"];
    let others: u64 = others.iter().map(|what| count(what)).sum();
    println!(
        "| {long} | {rule} | {round} | {} | {} | {}, {}, {}, {others} | {} | {} | {} | {} | {} | {} |",
        count("requests"),
        count("grants"),
        count("MOVED"),
        count("ASK"),
        count("TRYAGAIN"),
        count("asked anew"),
        outcome.doubles.len(),
        outcome.stuck.len(),
        count("UNANSWERED"),
        count("release: NOTHELD watched") + count("session release: NOTHELD"),
        count("channel moved"),
    );
    eprintln!(
        "{long}, {rule}, round {round}: made {:?}, held {}, stuck {:?}\n  {:?}",
        outcome.made, outcome.held, outcome.stuck, outcome.counts
    );
    for line in outcome.doubles.iter().take(3) {
        eprintln!("  {line}");
    }
}
