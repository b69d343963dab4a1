//! The loss of a hold with NOTIFY is told once, and none is told that did not happen.

use rlock_torture::history::{Fault, Out};

use crate::answers::FIRST_TOKEN;
use crate::clocks::lease_gone;
use crate::finding::Findings;
use crate::holds::{certain, Ends, Hold};
use crate::messages::{add, named};
use crate::past::{switches, Asked, Lock, Past};
use crate::request::Verb;
use crate::silent;
use crate::told::{due, Tag, Told};

pub fn check(past: &Past, found: &mut Findings) {
    for (tag, ops) in named(past) {
        often(past, &tag, &ops, found);
    }
    for (lock, owners) in &past.locks {
        let ends = Ends::new(past, lock.0, &lock.1);
        for ops in owners.values() {
            let mut all = ops.iter();
            if all.any(|at| past.ops[*at].request.notify.is_some()) {
                let holds = certain(past, &ends, ops);
                for_nothing(past, &holds, ops, found);
                after_release(past, ops, found);
                untold(past, lock, ops, found);
            }
        }
    }
}

fn tag(asked: &Asked) -> Option<Tag> {
    let (_, tag) = asked.request.notify.as_ref()?;
    Some((asked.op.conn, tag.clone()))
}

/// The losses that were told by this name.
fn losses<'a>(past: &'a Past, tag: &Tag) -> Vec<(u64, &'a str)> {
    let all = past.told.get(tag).into_iter().flatten();
    all.filter_map(|(at, told)| match told {
        Told::Lost(reason) => Some((*at, reason.as_str())),
        _ => None,
    })
    .collect()
}

/// It is somewhere else, and not gone.
fn elsewhere(reason: &str) -> bool {
    ["rebound", "released"].contains(&reason)
}

/// Not more often than something was given by that name; and for a reason that there was.
fn often(past: &Past, tag: &Tag, ops: &[usize], found: &mut Findings) {
    let told = losses(past, tag);
    // One that was sent again may have taken it back from another name in between.
    let given = ops
        .iter()
        .map(|at| &past.ops[*at])
        .filter(|asked| matches!(asked.op.out, Out::Int(_) | Out::Lost | Out::Unanswered));
    let most: usize = given.map(|asked| asked.request.keys.len()).sum();
    found.count("lost", told.len());
    if told.len() > most {
        let text = format!(
            "{} losses were told of {}, which had {most} holds",
            told.len(),
            tag.1
        );
        add(past, found, "lost", text, ops.to_vec(), told[most].0);
    }
    for (at, reason) in told {
        if reason == "silent" {
            silent::judge(past, tag, ops, at, found);
        }
        if !has_cause(past, &past.ops[ops[0]], at, reason) {
            let text = format!("{} was told of a loss without a cause: {reason}", tag.1);
            add(past, found, "lost", text, ops.to_vec(), at);
        }
    }
}

fn has_cause(past: &Past, asked: &Asked, at: u64, reason: &str) -> bool {
    let caused = |kinds: &[&str]| {
        past.faults.iter().any(|fault| {
            let here = fault.begin <= at && fault.end >= asked.op.call;
            let keys = &fault.keys;
            let ours = keys.is_empty()
                || asked
                    .request
                    .keys
                    .iter()
                    .any(|key| keys.iter().any(|one| key.starts_with(one)));
            let demotes = kinds.contains(&"demote") && switches(&fault.kind);
            here && ours && (demotes || kinds.contains(&fault.kind.as_str()))
        })
    };
    match reason {
        "forced" => caused(&["force"]),
        "flushed" => caused(&["flushall", "swapdb", "demote", "failover"]),
        "demoted" => caused(&["demote", "failover", "detach"]),
        "moved" => caused(&["move-slot", "move-slot-at-once", "rename", "swapdb"]),
        "evicted" => false,
        _ => true,
    }
}

/// A loss is told of what is surely held still.
fn for_nothing(past: &Past, holds: &[Hold], ops: &[usize], found: &mut Findings) {
    for hold in holds {
        let asked = &past.ops[hold.op];
        let Some(tag) = tag(asked).filter(|_| asked.request.keys.len() == 1) else {
            continue;
        };
        let mut others = ops.iter().filter(|at| **at != hold.op);
        if others.any(|at| self::tag(&past.ops[*at]).as_ref() == Some(&tag)) {
            continue;
        }
        found.checked("lost");
        for (at, reason) in losses(past, &tag) {
            // What was lost on one server another may have.
            let here = !elsewhere(reason) && !["demoted", "moved"].contains(&reason);
            if here && (hold.start..hold.end).contains(&at) {
                let text = format!("{} was told {reason} of what it held", asked.owner);
                add(past, found, "lost", text, vec![hold.op], at);
            }
        }
    }
}

/// A loss is told of what its owner released itself.
fn after_release(past: &Past, ops: &[usize], found: &mut Findings) {
    let all = || ops.iter().map(|at| &past.ops[*at]);
    let Some(grant) = past.only_acquisition(ops).map(|at| &past.ops[at]) else {
        return;
    };
    let plain = |asked: &&Asked| {
        let request = &asked.request;
        let sure = !request.if_held && request.if_token.is_none();
        request.verb == Verb::Release && sure && asked.op.out == Out::Int(0)
    };
    let Some(release) = all().find(plain).filter(|_| grant.token().is_some()) else {
        return;
    };
    if past.bonds_cut(grant.op.call, release.done) || grant.request.keys.len() != 1 {
        return;
    }
    found.checked("lost");
    for tag in all().filter_map(tag) {
        for (at, reason) in losses(past, &tag) {
            if !elsewhere(reason) {
                let text = format!("{} released its hold, and was told {reason}", grant.owner);
                add(past, found, "lost", text, ops.to_vec(), at);
            }
        }
    }
}

/// A hold is gone, by its lease or by somebody's hand, and nobody is told.
fn untold(past: &Past, lock: &Lock, ops: &[usize], found: &mut Findings) {
    let all = || ops.iter().map(|at| &past.ops[*at]);
    let muddled = all().any(|asked| {
        let wrong = asked
            .request
            .if_token
            .is_some_and(|token| token < FIRST_TOKEN);
        let gives_back = asked.request.releases() && !wrong && !asked.error("NOTHELD");
        asked.lost() || gives_back || asked.request.keys.len() > 1
    });
    let told = |asked: &&Asked| matches!(asked.op.out, Out::Int(_));
    let holds = |asked: &&Asked| asked.request.acquires() || asked.request.renews();
    let bound = all()
        .filter(holds)
        .filter(told)
        .filter(|asked| asked.request.notify.is_some());
    let Some(last) = bound.max_by_key(|asked| asked.op.call).filter(|_| !muddled) else {
        return;
    };
    let (Some(tag), Some(start)) = (tag(last), last.op.reply) else {
        return;
    };
    let later = all().any(|asked| asked.op.call < start && asked.done > start);
    let watched = all().any(|asked| asked.request.watchdog);
    let deadline = all().filter(holds).filter(told).map(|asked| {
        let lease = asked.request.lease_us;
        lease_gone(past, asked.server, (asked.op.call, asked.done), lease)
    });
    let deadline = deadline.max().filter(|_| !watched);
    let by_hand = past
        .faults
        .iter()
        .find(|fault| takes(fault, lock, last.server) && fault.begin > start);
    let by_hand = by_hand.map(|fault| fault.end);
    let Some(gone) = deadline.into_iter().chain(by_hand).min().filter(|_| !later) else {
        return;
    };
    let Some(by) = due(past, last, gone) else {
        return;
    };
    found.checked("silence");
    let all = losses(past, &tag);
    if !all.iter().any(|(at, _)| *at <= by) {
        let text = format!("{} has lost {} and was not told", last.owner, lock.1);
        add(past, found, "silence", text, ops.to_vec(), by);
    }
}

/// It ended all holds of the lock there were, which were on this server.
fn takes(fault: &Fault, lock: &Lock, server: u16) -> bool {
    let here = fault.db == lock.0 && fault.keys.contains(&lock.1);
    let freed = ["force", "del"].contains(&fault.kind.as_str()) && fault.note == "Int(1)";
    (here && freed) || (fault.kind == "flushall" && fault.server == server)
}
