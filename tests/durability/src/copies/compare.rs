//! At rest: each follower, and each AOF that is loaded, has what its server has.

use std::fs;
use std::io::{self, Error};
use std::path::Path;

use super::dump::{differences, dump, next_end, Keys};
use super::set::Set;
use crate::clock::{pause, within};
use crate::conn::Gone;
use crate::item::wall_us;
use crate::node;
use crate::resp::Value;

/// What must have an end left, so that nothing ends while it is looked at; ms.
const REST: u64 = 20_000;

const MARK: &str = "mark";

#[derive(Default)]
pub struct Compared {
    pub replicas: u64,
    pub aofs: u64,
    pub keys: u64,
    pub findings: Vec<String>,
}

pub fn compare(set: &Set, dir: &Path) -> io::Result<Compared> {
    let mut done = Compared::default();
    rest(set.master().port())?;
    // Who has this has carried out what came before it; an offset alone does not say so.
    let mark = wall_us().to_string();
    set.master().say(&format!("SET {MARK} {mark}"));
    let master = dump(set.master().port()).map_err(gone)?;
    done.keys = master.len() as u64;
    for number in 0..set.nodes.len() {
        if number == set.master || !set.follows(number) {
            continue;
        }
        if !within(60_000, || in_step(set, number, &mark)) {
            let (log, master) = (
                set.nodes[number].server().log(),
                set.master().server().log(),
            );
            done.findings.push(format!(
                "server {number} does not come in step:\n{}\nand the master\n{}",
                tail(&log),
                tail(&master)
            ));
            continue;
        }
        let copy = dump(set.nodes[number].port()).map_err(gone)?;
        done.replicas += 1;
        tell(
            &mut done.findings,
            &format!("replica {number}"),
            &master,
            &copy,
        );
    }
    for number in 0..set.nodes.len() {
        if set.nodes[number].aof {
            // One that was detached has leases of its own to end.
            rest(set.nodes[number].port())?;
            let own = dump(set.nodes[number].port()).map_err(gone)?;
            let copy = load(set, number, &dir.join(format!("aof-of-{number}")))?;
            done.aofs += 1;
            tell(&mut done.findings, &format!("AOF of {number}"), &own, &copy);
        }
    }
    // Else it was not at rest, and nothing of this says anything.
    let after = dump(set.master().port()).map_err(gone)?;
    if after != master {
        tell(
            &mut done.findings,
            "master, a moment later",
            &master,
            &after,
        );
    }
    Ok(done)
}

fn gone(_: Gone) -> Error {
    Error::other("a server does not answer")
}

/// Until nothing changes any more on this server.
fn rest(port: u16) -> io::Result<()> {
    for _ in 0..600 {
        let (one, other) = (dump(port).map_err(gone)?, dump(port).map_err(gone)?);
        let due = wall_us() / 1000 + REST;
        if one == other && next_end(&one).is_none_or(|end| end > due) {
            return Ok(());
        }
        pause(50);
    }
    Err(Error::other("a server does not come to rest"))
}

/// Whether it has all that the master has written.
fn in_step(set: &Set, number: usize, mark: &str) -> bool {
    let (own, master) = (set.nodes[number].port(), set.master().port());
    let field = |port, name| node::info(port, "replication", name);
    field(own, "master_link_status") == "up"
        && field(own, "master_replid") == field(master, "master_replid")
        && field(own, "master_repl_offset") == field(master, "master_repl_offset")
        && has_mark(set, number, mark)
}

fn has_mark(set: &Set, number: usize, mark: &str) -> bool {
    let reply = set.nodes[number].say(&format!("GET {MARK}"));
    reply.as_ref().and_then(Value::text) == Some(mark)
}

/// What a server has that loads a copy of the AOF.
fn load(set: &Set, number: usize, to: &Path) -> io::Result<Keys> {
    let port = set.nodes[number].port();
    let is = |field: &str, value: &str| node::info(port, "persistence", field) == value;
    let written = || {
        is("aof_enabled", "1")
            && is("aof_rewrite_in_progress", "0")
            && is("aof_rewrite_scheduled", "0")
            && is("aof_buffer_length", "0")
            && is("aof_pending_bio_fsync", "0")
    };
    if !within(60_000, written) {
        return Err(Error::other(format!(
            "no AOF: {}",
            tail(&set.nodes[number].server().log())
        )));
    }
    let _ = fs::remove_dir_all(to);
    let from = set.nodes[number].dir.join("appendonlydir");
    node::copy(&from, &to.join("appendonlydir"))?;
    let server = node::start(to, "--appendonly yes")?;
    dump(server.port).map_err(gone)
}

fn tell(findings: &mut Vec<String>, what: &str, one: &Keys, other: &Keys) {
    let all = differences(one, other);
    if !all.is_empty() {
        let some = all.iter().take(5).cloned().collect::<Vec<_>>().join("\n  ");
        let (count, keys) = (all.len(), one.len());
        findings.push(format!("{what}: {count} of {keys} keys differ:\n  {some}"));
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
