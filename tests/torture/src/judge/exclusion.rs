//! Two owners never hold a lock at once, but to read it; and an owner that surely
//! holds it is not told that it does not.

use crate::finding::{Finding, Findings};
use crate::holds::{certain, Ends, Hold};
use crate::past::{Asked, Past};
use crate::request::Verb;

pub fn check(past: &Past, found: &mut Findings) {
    for ((db, key), owners) in &past.locks {
        let ends = Ends::new(past, *db, key);
        let mut holds: Vec<(Hold, &str)> = Vec::new();
        for (owner, ops) in owners {
            let own = certain(past, &ends, ops);
            denied(past, key, &own, ops, found);
            holds.extend(own.into_iter().map(|hold| (hold, owner.as_str())));
        }
        holds.sort_by_key(|(hold, _)| hold.start);
        found.count("exclusion", holds.len());
        let mut open: Vec<(Hold, &str)> = Vec::new();
        for (hold, owner) in holds {
            open.retain(|(other, _)| other.end > hold.start);
            for (other, whose) in &open {
                if *whose == owner {
                    continue;
                }
                if !hold.mode.goes_with(other.mode) {
                    let until = hold.end.min(other.end);
                    let ms = (until - hold.start) as f64 / 1000.0;
                    found.add(Finding {
                        check: "exclusion",
                        text: format!(
                            "{whose} ({:?}) and {owner} ({:?}) held {key} at once, for {ms} ms",
                            other.mode, hold.mode
                        ),
                        key: Some((*db, key.clone())),
                        ops: vec![other.op, hold.op],
                        from: hold.start,
                        to: until,
                    });
                }
            }
            open.push((hold, owner));
        }
    }
}

/// Requests that say that the owner does not hold what it surely held all the time.
fn denied(past: &Past, key: &str, holds: &[Hold], ops: &[usize], found: &mut Findings) {
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
    match asked.request.verb {
        Verb::Release | Verb::Renew => asked.error("NOTHELD"),
        // For one who holds it nothing is in the way.
        Verb::Acquire => asked.op.out == rlock_torture::history::Out::Null,
        _ => false,
    }
}
