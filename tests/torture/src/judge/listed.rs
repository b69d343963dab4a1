//! RLOCK.LIST names everybody who surely holds a lock.

use std::collections::BTreeSet;

use rlock_torture::history::Out;

use crate::finding::Findings;
use crate::holds::{certain, Ends};
use crate::messages::add;
use crate::past::Past;

pub fn check(past: &Past, found: &mut Findings) {
    let lists: Vec<usize> = (0..past.ops.len())
        .filter(|at| matches!(past.ops[*at].op.out, Out::List(true, _)))
        .collect();
    let named: Vec<BTreeSet<(&str, &str)>> = lists
        .iter()
        .map(|at| names(&past.ops[*at].op.out))
        .collect();
    for ((db, key), owners) in &past.locks {
        let ends = Ends::new(past, *db, key);
        for (owner, ops) in owners {
            for hold in certain(past, &ends, ops) {
                let giver = &past.ops[hold.op];
                let first = lists.partition_point(|at| past.ops[*at].op.call < hold.start);
                for (at, named) in lists.iter().zip(&named).skip(first) {
                    let list = &past.ops[*at];
                    let (Some(reply), call) = (list.op.reply, list.op.call) else {
                        continue;
                    };
                    if call > hold.end {
                        break;
                    }
                    // It tells what this server has granted.
                    let here = list.server == giver.server && list.db == *db;
                    if !here || reply >= hold.end || past.bonds_cut(giver.op.call, reply) {
                        continue;
                    }
                    found.checked("list");
                    if !named.contains(&(key.as_str(), owner.as_str())) {
                        let text = format!("{owner} holds {key}, and RLOCK.LIST does not say so");
                        add(past, found, "list", text, vec![hold.op, *at], call);
                    }
                }
            }
        }
    }
}

fn names(out: &Out) -> BTreeSet<(&str, &str)> {
    match out {
        Out::List(_, holders) => holders
            .iter()
            .map(|(key, owner)| (key.as_str(), owner.as_str()))
            .collect(),
        _ => BTreeSet::new(),
    }
}
