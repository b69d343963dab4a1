//! With ONCE an owner never has two holds, nor two places.

use rlock_torture::history::Out;

use crate::finding::Findings;
use crate::messages::add;
use crate::past::{Asked, Past};
use crate::request::{Mode, Verb};
use crate::told::due;

pub fn check(past: &Past, found: &mut Findings) {
    for owners in past.locks.values() {
        for ops in owners.values() {
            let mut all = ops.iter();
            if all.any(|at| past.ops[*at].request.once) {
                two_holds(past, ops, found);
                two_places(past, ops, found);
            }
        }
    }
}

/// A release says that more is left than can be.
fn two_holds(past: &Past, ops: &[usize], found: &mut Findings) {
    for at in ops {
        let asked = &past.ops[*at];
        let (Verb::Release, Out::Int(left), mode) =
            (asked.request.verb, &asked.op.out, asked.mode())
        else {
            continue;
        };
        let acquires = ops.iter().map(|at| &past.ops[*at]);
        let mut acquires = acquires.filter(|one| one.request.acquires() && one.mode() == mode);
        if !acquires.clone().all(|one| one.request.once) {
            continue;
        }
        found.checked("once");
        let most = match mode {
            Mode::Permits => acquires.map(|one| one.request.permits).max().unwrap_or(1),
            _ => i64::from(acquires.next().is_some()),
        };
        // With a wrong token, or with nothing to give back, nothing was given back.
        let taken = if asked.request.if_token.is_some() {
            0
        } else {
            1
        };
        if *left > (most - taken).max(0) {
            let text = format!(
                "{} said ONCE, and has {left} left after a release",
                asked.owner
            );
            add(past, found, "once", text, ops.to_vec(), asked.op.call);
        }
    }
}

/// Whether the one asks for just what the other does.
fn same(one: &Asked, other: &Asked) -> bool {
    let (one, other) = (&one.request, &other.request);
    let permits =
        one.mode != Mode::Permits || (one.limit, one.permits) == (other.limit, other.permits);
    one.keys == other.keys && one.mode == other.mode && permits
}

/// A newer request of the owner waits; the older one must have left, and been told.
fn two_places(past: &Past, ops: &[usize], found: &mut Findings) {
    for (nth, old) in ops.iter().enumerate() {
        let asked = &past.ops[*old];
        let (Some(from), false) = (asked.queued, asked.again) else {
            continue;
        };
        let newer = ops[nth + 1..].iter().find(|at| {
            let one = &past.ops[**at];
            let waits = one.queued.is_some() && one.op.call > from && one.server == asked.server;
            waits && one.request.once && same(asked, one)
        });
        let Some(new) = newer else {
            continue;
        };
        let Some(due) = due(past, asked, past.ops[*new].queued.unwrap_or(0)) else {
            continue;
        };
        found.checked("once");
        if asked.op.reply.is_none_or(|end| end > due) {
            let text = format!("{} has a new place, and the old one waits on", asked.owner);
            add(past, found, "once", text, vec![*old, *new], due);
        }
    }
}
