//! Who holds for long: locks that nobody else wants, taken at the first master for as long
//! as it is one. Then another one asks for them at the new master.

use super::judge::{Held, Mode};
use super::load::Load;
use super::nodes::{map, slot_of, SLOTS};
use crate::clock::{now_us, pause};
use crate::conn::{Conn, Gone};
use crate::judge::ROUNDING;
use crate::resp::Value;
use crate::server::role;

/// Longer than it takes to replace a master, ms.
const LEASE: u64 = 15_000;
/// In one write.
const AT_ONCE: usize = 48;
/// The newest, which the replica is least likely to have.
const ASKED: usize = 1_000;

pub fn keep(load: &Load, id: usize) {
    let first = |key: &String| slot_of(key) < SLOTS / 3;
    let mut names = (0_u64..)
        .map(|number| format!("h{id}.{number}"))
        .filter(first);
    let mut taken = Vec::new();
    if let Ok(mut conn) = Conn::open(load.ports.own[0]) {
        while !load.is_over() {
            let keys: Vec<String> = names.by_ref().take(AT_ONCE).collect();
            if batch(load, &mut conn, id, keys, &mut taken).is_err() {
                break;
            }
            pause(10);
        }
    }
    let newest = taken.into_iter().rev().take(ASKED).collect();
    if !load.is_over() {
        ask_anew(load, id, newest);
    }
}

/// An error: this is the master no more.
fn batch(
    load: &Load,
    conn: &mut Conn,
    id: usize,
    keys: Vec<String>,
    taken: &mut Vec<String>,
) -> Result<(), Gone> {
    let owner = format!("keeper{id}");
    let mut lines: Vec<String> = keys.iter().map(|key| acquire(key, &owner)).collect();
    if load.with_wait {
        lines.push("WAIT 1 100".to_owned());
    }
    let call = now_us();
    conn.send(&lines)?;
    let mut held = Vec::new();
    let mut end = Ok(());
    for key in keys {
        match conn.next(call + 20_000_000) {
            Ok(Value::Int(_)) => held.push(hold(key, &owner, call)),
            Ok(_) => end = Err(Gone::Closed),
            Err(gone) => {
                end = Err(gone);
                break;
            }
        }
    }
    if load.with_wait {
        // Who gets no reply does not begin either.
        if !matches!(conn.next(now_us() + 20_000_000)?, Value::Int(1..)) {
            load.count("WAIT too few");
            return end;
        }
        held.iter_mut().for_each(|one| one.from = now_us());
    }
    taken.extend(held.iter().map(|one| one.key.clone()));
    note(load, held);
    end
}

fn acquire(key: &str, owner: &str) -> String {
    format!("RLOCK.ACQUIRE {key} {owner} {LEASE}")
}

fn hold(key: String, owner: &str, call: u64) -> Held {
    Held {
        key,
        owner: owner.to_owned(),
        mode: Mode::Alone,
        from: now_us(),
        to: (call + LEASE * 1000).saturating_sub(ROUNDING),
    }
}

fn note(load: &Load, held: Vec<Held>) {
    let mut notes = load.notes();
    *notes.counts.entry("grants".to_owned()).or_default() += held.len() as u64;
    notes.held.extend(held);
}

fn ask_anew(load: &Load, id: usize, mut left: Vec<String>) {
    let owner = format!("heir{id}");
    let until = now_us() + LEASE * 1000;
    while now_us() < until {
        let Some(first) = left.first() else { return };
        let port = map(&load.ports)[usize::from(slot_of(first))];
        if port == load.ports.own[0] || port == 0 || role(port) != "master" {
            pause(20);
            continue;
        }
        let Ok(mut conn) = Conn::open(port) else {
            continue;
        };
        let lines: Vec<String> = left.iter().map(|key| acquire(key, &owner)).collect();
        let call = now_us();
        if conn.send(&lines).is_err() {
            continue;
        }
        let (mut held, mut again) = (Vec::new(), Vec::new());
        for key in left {
            match conn.next(call + 10_000_000) {
                Ok(Value::Int(_)) => held.push(hold(key, &owner, call)),
                Ok(Value::Error(_)) | Err(_) => again.push(key),
                Ok(_) => load.count("asked anew"),
            }
        }
        held.iter().for_each(|_| load.count("asked anew"));
        note(load, held);
        left = again;
    }
}
