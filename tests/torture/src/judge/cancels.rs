//! What CANCEL says, and what becomes of the wait that it is about: called off it is not
//! granted any more, and what is not called off is granted at once or was over.

use rlock_torture::history::Out;

use crate::finding::Findings;
use crate::messages::add;
use crate::past::{Asked, Past};
use crate::request::Mode;
use crate::told::due;

pub fn check(past: &Past, found: &mut Findings) {
    let cancels = past.cancels.values().flatten();
    for at in cancels {
        let asked = &past.ops[*at];
        let (Out::Int(count), Some(reply)) = (&asked.op.out, asked.op.reply) else {
            continue;
        };
        let Some(wait) = only_wait(past, asked, reply) else {
            continue;
        };
        found.checked("cancel");
        if let Some(wrong) = wrong(past, asked, &past.ops[wait], *count, reply) {
            add(past, found, "cancel", wrong, vec![wait, *at], reply);
        }
    }
}

/// The one request that it can be about.
fn only_wait(past: &Past, cancel: &Asked, reply: u64) -> Option<usize> {
    let lock = (cancel.db, cancel.request.keys[0].clone());
    let ops = past.locks.get(&lock)?.get(&cancel.owner)?;
    let mut waits = ops.iter().filter(|at| {
        let asked = &past.ops[**at];
        asked.waits().is_some() && asked.op.call <= reply
    });
    let (Some(at), None) = (waits.next(), waits.next()) else {
        return None;
    };
    let asked = &past.ops[*at];
    let mode = cancel.mode();
    let fits = mode == Mode::Plain || mode == asked.mode();
    (fits && asked.server == cancel.server).then_some(*at)
}

fn wrong(past: &Past, cancel: &Asked, wait: &Asked, count: i64, reply: u64) -> Option<String> {
    let owner = &wait.owner;
    // A queued waiter was surely there before.
    let queued = wait.queued.filter(|queued| *queued <= cancel.op.call);
    let due = queued.and_then(|_| due(past, wait, reply));
    match (count, &wait.op.out) {
        (1.., Out::Int(token)) => Some(format!(
            "the wait of {owner} was called off, and then granted: {token}"
        )),
        (2.., _) => Some(format!(
            "{count} waits of {owner} were called off, which had one"
        )),
        (_, Out::Lost) if due.is_some() => Some(format!(
            "{owner} said CANCEL, and was never told how its wait ended"
        )),
        (0, Out::Int(_) | Out::Null) if due.is_some_and(|due| wait.op.reply > Some(due)) => {
            Some(format!(
                "CANCEL by connection {} found no wait of {owner}, which waited on",
                cancel.op.conn
            ))
        }
        _ => None,
    }
}
