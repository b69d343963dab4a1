//! Two owners never hold a lock at once, but to read it; and an owner that surely
//! holds it is not told that it does not.

use crate::finding::{Finding, Findings};
use crate::holds::{accounts, Ends, Hold};
use crate::past::{Asked, Lock, Past};
use crate::request::{Mode, Verb};

pub fn check(past: &Past, found: &mut Findings) {
    for ((db, key), owners) in &past.locks {
        let ends = Ends::new(past, *db, key);
        let mut holds: Vec<(Hold, &str)> = Vec::new();
        for (owner, ops) in owners {
            let own = accounts(past, &ends, ops);
            let lasting: Vec<&Hold> = own.iter().filter(|hold| hold.lasts()).collect();
            denied(past, key, &lasting, ops, found);
            found.count("exclusion", lasting.len());
            holds.extend(own.into_iter().map(|hold| (hold, owner.as_str())));
        }
        holds.sort_by_key(|(hold, _)| hold.start);
        together(&(*db, key.clone()), &holds, found);
    }
}

/// Those that hold at once what only one may; and those that only a fault excuses, which
/// are counted.
fn together(lock: &Lock, holds: &[(Hold, &str)], found: &mut Findings) {
    let mut open: Vec<(&Hold, &str, bool)> = Vec::new();
    for (hold, owner) in holds {
        open.retain(|(other, ..)| other.natural > hold.start);
        for (other, whose, excused) in &mut open {
            if whose == owner || hold.mode.goes_with(other.mode) {
                continue;
            }
            let until = hold.end.min(other.end);
            if until <= hold.start {
                // Once for each that lost its lock so.
                if let (false, Some(kind)) = (*excused, &other.by) {
                    found.excuse(kind);
                    *excused = true;
                }
                continue;
            }
            let ms = (until - hold.start) as f64 / 1000.0;
            let (first, second) = (other.mode, hold.mode);
            let key = &lock.1;
            found.add(Finding {
                check: "exclusion",
                text: format!(
                    "{whose} ({first:?}) and {owner} ({second:?}) held {key} at once, for {ms} ms"
                ),
                key: Some(lock.clone()),
                ops: vec![other.op, hold.op],
                from: hold.start,
                to: until,
            });
        }
        open.push((hold, owner, false));
    }
}

/// Requests that say that the owner does not hold what it surely held all the time.
fn denied(past: &Past, key: &str, holds: &[&Hold], ops: &[usize], found: &mut Findings) {
    for at in ops {
        let asked = &past.ops[*at];
        let Some(reply) = asked.op.reply else {
            continue;
        };
        let mut all = holds.iter().rev();
        let covering = all.find(|hold| {
            hold.start <= asked.op.call && hold.end >= reply && hold.mode == asked.mode()
        });
        let Some(hold) = covering else {
            continue;
        };
        found.checked("held");
        if !denies(asked) {
            continue;
        }
        found.add(Finding {
            check: "held",
            text: format!("{} held {key}, and was told that it did not", asked.owner),
            key: Some((asked.db, key.to_owned())),
            ops: vec![hold.op, *at],
            from: asked.op.call,
            to: reply,
        });
    }
}

fn denies(asked: &Asked) -> bool {
    let permits = asked.mode() == Mode::Permits;
    match asked.request.verb {
        // It may have fewer than it gives back.
        Verb::Release if permits && asked.request.permits > 1 => false,
        Verb::Release | Verb::Renew => asked.error("NOTHELD"),
        // For one who holds it nothing is in the way, but for more permits.
        Verb::Acquire if permits => false,
        Verb::Acquire => asked.op.out == rlock_torture::history::Out::Null,
        _ => false,
    }
}
