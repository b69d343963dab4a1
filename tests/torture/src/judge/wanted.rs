//! Who holds a lock, and wants to know that somebody waits (WANTED), is told so, and is told so of
//! somebody only.

use std::iter;

use crate::finding::Findings;
use crate::messages;
use crate::past::{ends_all, Asked, Lock, Past, NEVER};
use crate::request::Mode;
use crate::silent::is_waited_for;
use crate::told::{given_up, hears_until, Told};

/// A message comes in less than that where nothing is in its way, us.
const TOLD: u64 = 600_000;
/// Who waited so long before a message, us, may be whom it speaks of.
const UNDER_WAY: u64 = 1_000_000;

/// Why there should not be this message, if so. By none but these requests its tag is known.
pub fn wrong(past: &Past, ops: &[usize], at: u64) -> Option<&'static str> {
    let asked = || ops.iter().map(|op| &past.ops[*op]);
    if !asked().any(|one| one.request.wanted) {
        return Some("it did not ask for that");
    }
    let span = (at.saturating_sub(UNDER_WAY), at);
    let somebody = asked().any(|one| is_waited_for(past, one, span));
    (!somebody && past.calm(span.0, span.1)).then_some("nobody waited")
}

/// Nobody waits for long behind one who is not told.
pub fn check(past: &Past, found: &mut Findings) {
    for (lock, owners) in &past.locks {
        let mut all = owners.values().flatten();
        // Such a waiter is somebody only if it can have its other keys.
        if all.any(|at| past.ops[*at].request.keys.len() > 1) {
            continue;
        }
        for (owner, ops) in owners {
            let Some(hold) = Hold::of(past, ops).filter(|hold| hold.is_left_alone(past, lock))
            else {
                continue;
            };
            let others = owners.iter().filter(|(other, _)| *other != owner);
            for at in others.flat_map(|(_, ops)| ops) {
                hold.is_told(past, *at, found);
            }
        }
    }
}

/// A hold that excludes all others, of which everything is known.
struct Hold<'p> {
    op: usize,
    asked: &'p Asked,
    from: u64,
    to: u64,
    lease: u64,
    wanted: Vec<u64>,
}

impl<'p> Hold<'p> {
    fn of(past: &'p Past, ops: &[usize]) -> Option<Self> {
        let all = || ops.iter().map(|at| &past.ops[*at]);
        let op = past.only_acquisition(ops)?;
        let asked = &past.ops[op];
        let alone = matches!(asked.mode(), Mode::Plain | Mode::Write) && asked.token().is_some();
        // Another request with NOTIFY may take the place of what this one has asked for.
        let mut others = all().filter(|one| one.request.renews());
        let rebound = others.any(|one| one.request.notify.is_some() || one.lost());
        let (_, tag) = asked.request.notify.as_ref()?;
        if !alone || rebound || !asked.request.wanted || asked.again {
            return None;
        }
        let told = past.told.get(&(asked.op.conn, tag.clone()));
        let leases = all().map(|one| one.request.lease_us);
        Some(Self {
            op,
            asked,
            from: asked.done,
            to: given_up(past, ops, asked),
            lease: leases.max().unwrap_or(NEVER),
            wanted: told
                .into_iter()
                .flatten()
                .filter(|(_, told)| *told == Told::Wanted)
                .map(|(at, _)| *at)
                .collect(),
        })
    }

    /// Nobody laid hands on its lock.
    fn is_left_alone(&self, past: &Past, lock: &Lock) -> bool {
        let touches = |keys: &[String], kind: &str| {
            ends_all(kind) || keys.iter().any(|key| lock.1.starts_with(key.as_str()))
        };
        let (from, to) = (self.asked.op.call, self.to);
        let mut faults = past.faults.iter();
        let touched = faults.any(|fault| {
            let then = fault.begin <= to && fault.end >= from;
            then && touches(&fault.keys, &fault.kind)
        });
        !touched && !past.bonds_cut(from, to) && past.holds_brought(lock) >= to
    }

    /// Of this one who waits, or of another, from when it waits and again every third of the lease.
    fn is_told(&self, past: &Past, at: usize, found: &mut Findings) {
        let waiter = &past.ops[at];
        let waits = waiter.request.acquires() && waiter.waits().is_some();
        let sure = !waiter.op.behind && !waiter.again && waiter.server == self.asked.server;
        let Some(until) = waiter.op.reply.filter(|_| waits && sure) else {
            return;
        };
        let begin = self.from.max(waiter.queued.unwrap_or(waiter.op.sent));
        let until = until.min(self.to);
        let third = (self.lease / 3).max(1);
        let moments = iter::successors(Some(begin), |moment| moment.checked_add(third));
        let spans = iter::once(self.asked.op.call)
            .chain(moments.clone())
            .zip(moments);
        for (after, moment) in spans.take_while(|(_, moment)| *moment < until) {
            let by = moment + TOLD;
            let hears = by < until && past.calm(moment, by) && hears_until(past, self.asked) > by;
            if !hears || past.put_off(begin, by) {
                continue;
            }
            found.checked("wanted");
            if !self.wanted.iter().any(|at| (after..=by).contains(at)) {
                let text = format!(
                    "{} was not told that {} waits for what it has",
                    self.asked.owner, waiter.owner
                );
                messages::add(past, found, "wanted", text, vec![self.op, at], by);
            }
        }
    }
}
