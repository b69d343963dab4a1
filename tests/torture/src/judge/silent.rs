//! Who says that it is alive (HEARTBEAT) and is silent for longer than its patience loses what its
//! watchdog keeps, as far as somebody waits for that, and nobody else does.

use std::collections::BTreeMap;

use rlock_torture::history::Out;

use crate::clocks::lease_gone;
use crate::finding::{Finding, Findings};
use crate::messages;
use crate::past::{Asked, Lock, Past, NEVER};
use crate::request::Mode;
use crate::told::{given_up, hears_until, Tag};

/// Who waits behind one who is silent is served in less than that, us.
const SERVED: u64 = 600_000;
/// So much is counted at most of a time in which a server stood still, us.
const COUNTED: u64 = 150_000;
/// What a server may be off by when it counts from a heartbeat, us.
const ROUNDING: u64 = 5_000;

/// A server does nothing meanwhile, or writes nothing, for so long as the fault says.
pub fn stands_still(kind: &str) -> bool {
    ["stop", "pause"].contains(&kind)
}

struct Beat {
    /// It was heard not before, and not after, if it surely was.
    call: u64,
    heard: u64,
    patience: u64,
}

fn beats(past: &Past, conn: u32) -> Vec<Beat> {
    let ops = past.heartbeats.get(&conn).into_iter().flatten();
    let all = ops.map(|at| &past.ops[*at]);
    all.filter(|asked| !matches!(asked.op.out, Out::Error(_)))
        .map(|asked| Beat {
            call: asked.op.call,
            heard: asked.op.reply.unwrap_or(NEVER),
            patience: patience(asked),
        })
        .collect()
}

/// It stands where other requests have an owner.
fn patience(asked: &Asked) -> u64 {
    let ms: u64 = asked.op.args[1].parse().unwrap_or(NEVER);
    ms.saturating_mul(1000)
}

/// The heartbeats of a connection, the last first, each with when the next one surely was heard.
fn backwards(past: &Past, conn: u32) -> impl Iterator<Item = (Beat, u64)> {
    let mut next = NEVER;
    beats(past, conn).into_iter().rev().map(move |beat| {
        let by = next;
        next = next.min(beat.heard);
        (beat, by)
    })
}

/// From when to when a connection may have been taken for silent.
pub fn silences(past: &Past, conn: u32) -> Vec<(u64, u64)> {
    let all = backwards(past, conn);
    all.map(|(beat, by)| (beat.call.saturating_add(beat.patience), by))
        .filter(|(from, by)| from < by)
        .collect()
}

/// A loss was told for silence: there must have been one, and somebody who waited.
pub fn judge(past: &Past, tag: &Tag, ops: &[usize], at: u64, found: &mut Findings) {
    found.checked("silent");
    let asked = &past.ops[ops[0]];
    let wrong = match since(past, asked, at) {
        None => "it was heard of in time",
        Some(since) if !is_waited_for(past, asked, (since, at)) => "nobody waited",
        Some(_) => return,
    };
    let text = format!("{} was told that it is silent, and {wrong}", tag.1);
    messages::add(past, found, "silent", text, ops.to_vec(), at);
}

/// From when on it may have been taken for silent for what it held, if it may.
fn since(past: &Past, asked: &Asked, at: u64) -> Option<u64> {
    let spans = backwards(past, asked.op.conn).filter_map(|(beat, by)| {
        let by = by.min(at);
        let listened = listened(past, asked.server, (beat.call, by));
        let long = listened + ROUNDING >= beat.patience && by >= asked.op.call;
        let from = beat.call.saturating_add(beat.patience);
        long.then(|| from.max(asked.op.call))
    });
    spans.min()
}

/// For how long of this time a server could hear at most, by what was done to it.
fn listened(past: &Past, server: u16, (from, to): (u64, u64)) -> u64 {
    let faults = past.faults.iter();
    let its = faults.filter(|fault| fault.server == server && stands_still(&fault.kind));
    let stood = its.map(|fault| {
        // Whoever did it may have been late at either end.
        let surely = (fault.end.saturating_sub(fault.ms * 1000)).max(from);
        let until = (fault.begin + fault.ms * 1000).min(to);
        until.saturating_sub(surely).saturating_sub(COUNTED)
    });
    to.saturating_sub(from).saturating_sub(stood.sum())
}

/// Whether somebody else may have waited at some moment of this time for a lock that was asked for.
pub fn is_waited_for(past: &Past, asked: &Asked, (from, to): (u64, u64)) -> bool {
    asked.request.keys.iter().any(|key| {
        let lock = (asked.db, key.clone());
        let owners = past.locks.get(&lock).into_iter().flatten();
        let others = owners.filter(|(owner, _)| **owner != asked.owner);
        let mut all = others.flat_map(|(_, ops)| ops).map(|at| &past.ops[*at]);
        let waits = |one: &Asked| is_kept_out(one, asked) && one.op.call <= to && one.done >= from;
        past.holds_brought(&lock) <= to || all.any(waits)
    })
}

fn is_kept_out(waiter: &Asked, holder: &Asked) -> bool {
    let both_read = waiter.mode() == Mode::Read && holder.mode() == Mode::Read;
    waiter.request.acquires() && waiter.waits().is_some() && !both_read
}

/// Nobody waits for longer behind one who is silent.
pub fn check(past: &Past, found: &mut Findings) {
    for (lock, owners) in &past.locks {
        for ops in owners.values() {
            let Some(grant) = only_grant(past, ops) else {
                continue;
            };
            for span in surely_silent(past, ops, grant) {
                served(past, lock, owners, (grant, span), found);
            }
        }
    }
}

/// The one request by which an owner got what a connection watches that can be notified.
fn only_grant(past: &Past, ops: &[usize]) -> Option<usize> {
    let at = past.only_acquisition(ops)?;
    let asked = &past.ops[at];
    let request = &asked.request;
    let watched = request.watchdog && request.notify.is_some() && request.keys.len() == 1;
    let fits = watched && asked.mode() != Mode::Permits && asked.token().is_some();
    fits.then_some(at)
}

/// When its connection surely was silent, and it held nothing that it had asked for itself.
fn surely_silent(past: &Past, ops: &[usize], grant: usize) -> Vec<(u64, u64)> {
    let asked = &past.ops[grant];
    let all = || ops.iter().map(|at| &past.ops[*at]);
    let leases = all().filter(|one| !one.request.releases()).map(|one| {
        let span = (one.op.call, one.done);
        lease_gone(past, one.server, span, one.request.lease_us)
    });
    let begin = leases.max().unwrap_or(NEVER);
    let end = given_up(past, ops, asked).min(past.death(asked.op.conn).0);
    let beats = beats(past, asked.op.conn);
    let next = beats.iter().skip(1).map(|beat| beat.call).chain([NEVER]);
    let spans = beats.iter().zip(next).map(|(beat, next)| {
        let from = beat.heard.saturating_add(beat.patience);
        (from.max(begin), next.min(end))
    });
    spans.filter(|(from, to)| from < to).collect()
}

/// Whoever waited meanwhile had it soon, or another one had.
fn served(
    past: &Past,
    lock: &Lock,
    owners: &BTreeMap<String, Vec<usize>>,
    (grant, (from, to)): (usize, (u64, u64)),
    found: &mut Findings,
) {
    let holder = &past.ops[grant];
    let others = owners.iter().filter(|(owner, _)| **owner != holder.owner);
    let others: Vec<usize> = others.flat_map(|(_, ops)| ops).copied().collect();
    let waits = |at: &&usize| {
        let one = &past.ops[**at];
        let alone = one.request.keys.len() == 1 && !one.op.behind;
        alone && is_kept_out(one, holder) && one.server == holder.server
    };
    for at in others.iter().filter(waits) {
        let waiter = &past.ops[*at];
        let Some(reply) = waiter.op.reply.filter(|_| !waiter.error("MOVED")) else {
            continue;
        };
        let begin = from.max(waiter.queued.unwrap_or(waiter.op.sent));
        let (end, bound) = (to.min(reply), begin.saturating_add(SERVED));
        if begin >= end || !past.calm_for(waiter.op.conn, begin, end.min(bound)) {
            continue;
        }
        found.checked("silent");
        let brought = past.holds_brought(lock) <= bound;
        let had = |at: &usize| {
            let (one, after) = (&past.ops[*at], (holder.done, bound));
            had_it(past, one, after) || may_not_know(past, one, (begin, bound))
        };
        if end < bound || brought || others.iter().any(had) {
            continue;
        }
        found.add(Finding {
            check: "silent",
            text: format!(
                "{} waited for {} behind {}, which was silent, for {} ms",
                waiter.owner,
                lock.1,
                holder.owner,
                (end - begin) / 1000
            ),
            key: Some(lock.clone()),
            ops: vec![grant, *at],
            from: begin,
            to: end,
        });
    }
}

/// It had the lock in this time, or may have had it: what it was told it would have heard.
fn had_it(past: &Past, one: &Asked, (from, to): (u64, u64)) -> bool {
    let then = one.request.acquires() && one.done >= from;
    if !one.lost() {
        return then && one.token().is_some() && one.done <= to;
    }
    let hears = one.queued.is_some() && hears_until(past, one) > to;
    then && one.op.call <= to && !hears
}

/// Its process stood still: it may have the lock, and look later.
fn may_not_know(past: &Past, one: &Asked, (from, to): (u64, u64)) -> bool {
    let waits = one.request.acquires() && one.op.call <= to && one.done >= from;
    waits && !past.calm_for(one.op.conn, from, to)
}
