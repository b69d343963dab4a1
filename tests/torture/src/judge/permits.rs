//! No more permits of a lock are out than its limit, which is the one that its holders
//! say, or the one that RLOCK.LIMIT has set since.

use std::collections::BTreeMap;

use rlock_torture::history::Out;

use crate::finding::{Finding, Findings};
use crate::holds::{certain, Ends, Hold};
use crate::past::{Asked, Lock, Past};
use crate::request::Mode;

pub fn check(past: &Past, found: &mut Findings) {
    for (lock, owners) in &past.locks {
        let mut all = owners.values().flatten();
        if !all.any(|at| past.ops[*at].mode() == Mode::Permits) {
            continue;
        }
        let ends = Ends::new(past, lock.0, &lock.1);
        let mut holds: Vec<(Hold, &str)> = Vec::new();
        for (owner, ops) in owners {
            let own = certain(past, &ends, ops);
            let own = own.into_iter().filter(|hold| hold.mode == Mode::Permits);
            holds.extend(own.map(|hold| (hold, owner.as_str())));
        }
        holds.sort_by_key(|(hold, _)| hold.start);
        of_lock(past, lock, &holds, found);
    }
}

fn of_lock(past: &Past, lock: &Lock, holds: &[(Hold, &str)], found: &mut Findings) {
    let none = Vec::new();
    let limits = past.limits.get(lock).unwrap_or(&none);
    let limits = limits.iter().map(|at| &past.ops[*at]);
    let limits: Vec<&Asked> = limits
        .filter(|asked| !matches!(asked.op.out, Out::Error(_)))
        .collect();
    let mut open: Vec<(&Hold, &str)> = Vec::new();
    for (hold, owner) in holds {
        open.retain(|(other, _)| other.end > hold.start);
        open.push((hold, owner));
        found.checked("permits");
        let out = out(&open);
        let mut tell = |text: String| {
            found.add(Finding {
                check: "permits",
                text,
                key: Some(lock.clone()),
                ops: open.iter().map(|(hold, _)| hold.op).collect(),
                from: hold.start,
                to: open.iter().map(|(hold, _)| hold.end).min().unwrap_or(0),
            });
        };
        let said = |hold: &Hold| past.ops[hold.op].request.limit;
        let mut others = open.iter().filter_map(|(other, _)| said(other));
        let asked = said(hold);
        if let Some(other) = others.find(|other| asked.is_some_and(|asked| asked != *other)) {
            tell(format!(
                "{owner} holds permits beside one who said LIMIT {other}"
            ));
        }
        let before = limits.iter().filter(|one| one.op.call < hold.start);
        let most = before
            .filter_map(|one| one.request.limit)
            .chain(asked)
            .max();
        if let Some(most) = most.filter(|most| out > *most && asked.is_some()) {
            tell(format!("{out} permits are out, of {most} at the most"));
        } else if let Some(limit) = in_force(past, &limits, &open, hold).filter(|n| out > *n) {
            tell(format!(
                "{out} permits are out, and one was given, with RLOCK.LIMIT at {limit}"
            ));
        }
    }
}

/// How many are surely out. What says how many in all counts beside what adds to it.
fn out(open: &[(&Hold, &str)]) -> i64 {
    let mut owners: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (hold, owner) in open {
        let (added, all) = owners.entry(owner).or_default();
        match hold.adds {
            true => *added += hold.permits,
            false => *all = hold.permits.max(*all),
        }
    }
    owners.values().map(|(added, all)| *added.max(all)).sum()
}

/// The limit that RLOCK.LIMIT had surely set when this hold was given: no other was under
/// way since, and one who held from then to now kept it in force.
fn in_force(past: &Past, limits: &[&Asked], open: &[(&Hold, &str)], hold: &Hold) -> Option<i64> {
    let call = past.ops[hold.op].op.call;
    let last = limits
        .iter()
        .rfind(|one| one.op.reply.is_some() && one.done < call)?;
    let alone = limits.iter().all(|one| {
        std::ptr::eq(*one, *last) || one.done < last.op.call || one.op.call > hold.start
    });
    let mut open = open.iter();
    let kept = open.any(|(other, _)| other.op != hold.op && other.start <= last.op.call);
    let given = hold.adds && past.ops[hold.op].request.acquires();
    last.request.limit.filter(|_| alone && kept && given)
}
