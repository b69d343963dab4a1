//! When connections ended, as their servers saw it. A client learns of it later, and
//! until then may read what was sent before: a reply that it read is no proof that the
//! connection was open by then. The request is, for its server read it.

use std::collections::{BTreeSet, HashMap};

use rlock_torture::history::{Conn, End, Fault};

use crate::past::{cuts_bonds, ends_all, ends_key, Past, NEVER};
use crate::silent;

/// What a connection was used for.
#[derive(Default)]
struct Uses {
    /// The last time at which something was asked that was answered.
    served: u64,
    /// The locks whose holds it keeps: it is closed when it loses one.
    watched: BTreeSet<String>,
}

/// For each connection: from when on it may have been closed, and by when it surely
/// was.
pub fn deaths(past: &Past) -> HashMap<u32, (u64, u64)> {
    let mut used: HashMap<u32, Uses> = HashMap::new();
    for asked in &past.ops {
        let uses = used.entry(asked.op.conn).or_default();
        if asked.op.reply.is_some() {
            uses.served = uses.served.max(asked.op.call);
        }
        if asked.request.watchdog {
            uses.watched.extend(asked.request.keys.iter().cloned());
        }
    }
    let conns = past.conns.iter().map(|(id, conn)| {
        let by = past.settled(conn.closed);
        let death = match conn.end {
            End::Client => (conn.closed, by),
            End::Server => (
                by_server(past, conn, &used.remove(id).unwrap_or_default()),
                by,
            ),
            End::Open => (conn.closed, NEVER),
        };
        (*id, death)
    });
    conns.collect()
}

/// From when on the server may have closed a connection: from the beginning of the
/// first thing that may have made it do so. Where there is none nothing is excused
/// before the last sign of life.
fn by_server(past: &Past, conn: &Conn, uses: &Uses) -> u64 {
    let faults = past.faults.iter();
    let faults = faults.filter(|fault| may_close(fault, conn, &uses.watched));
    let faults = faults.map(|fault| (fault.begin, fault.end + late(fault)));
    let who = format!("server {}", conn.server);
    let stalls = past.stalls.iter().filter(|stall| stall.who == who);
    let stalls = stalls.map(|stall| (stall.from, stall.to));
    // What it loses then it may not be told otherwise.
    let silences = silent::silences(past, conn.conn);
    let causes = faults.chain(stalls).chain(silences).filter(|(begin, end)| {
        let in_its_life = *begin <= conn.closed && *end >= conn.opened;
        in_its_life && past.settled(*end) >= uses.served
    });
    match causes.map(|(begin, _)| begin).min() {
        Some(begin) => begin.max(uses.served),
        None => conn.last,
    }
}

/// What was done shows later by so much, us.
fn late(fault: &Fault) -> u64 {
    match silent::stands_still(&fault.kind) {
        true => 0,
        false => fault.ms * 1000,
    }
}

fn may_close(fault: &Fault, conn: &Conn, watched: &BTreeSet<String>) -> bool {
    let here = fault.server == conn.server;
    match fault.kind.as_str() {
        "client-kill" => names(fault, conn),
        // It is told of by its tag, and by either server.
        "move-slot" | "move-slot-at-once" => {
            let moves = |key: &String| fault.keys.iter().any(|tag| key.starts_with(tag));
            watched.iter().any(moves)
        }
        // Nothing is renewed meanwhile.
        "stop" | "pause" | "min-replicas" | "disk-full" | "clock-forward" => here,
        kind if ends_key(kind) => {
            let lost = fault.keys.iter().any(|key| watched.contains(key));
            here && fault.db == conn.db && lost
        }
        kind => here && (cuts_bonds(kind) || ends_all(kind)),
    }
}

/// Whether a fault was meant for this connection: clients' ids are their server's own.
pub fn names(fault: &Fault, conn: &Conn) -> bool {
    let mut ids = fault.note.split(',');
    let id = conn.client_id.map(|id| id.to_string());
    fault.server == conn.server && id.is_some_and(|id| ids.any(|one| one == id))
}
