//! The wait of each queued waiter ends by one message or by what the documentation says instead,
//! and nobody gets a message of what was not asked.

use std::collections::BTreeMap;

use rlock_torture::history::Out;

use crate::answers::{CODES, FIRST_TOKEN};
use crate::finding::{Finding, Findings};
use crate::past::{Asked, Past};
use crate::told::{due, Tag, Told};
use crate::wanted;

pub const SUPERSEDED: &str = "SUPERSEDED ";

pub fn check(past: &Past, found: &mut Findings) {
    for message in &past.babble {
        let text = format!("connection {} was told {:?}", message.conn, message.text);
        add(past, found, "messages", text, Vec::new(), message.at);
    }
    let named = named(past);
    for (tag, all) in &past.told {
        let ops = named.get(tag).map_or(&[][..], Vec::as_slice);
        let mut tell = |text: String, at| {
            add(past, found, "messages", text, ops.to_vec(), at);
        };
        let mut ends = 0;
        for (at, told) in all {
            if !ops.iter().any(|op| past.ops[*op].op.call <= *at) {
                let (conn, name) = tag;
                tell(
                    format!("connection {conn} was told {told:?} of {name}, which it did not ask"),
                    *at,
                );
            }
            if let Some(wrong) = wrong(past, ops, *at, told) {
                tell(format!("{wrong}: {told:?}"), *at);
            }
            ends += usize::from(told.ends());
        }
        let waits = ops.iter().filter(|at| may_wait(&past.ops[**at])).count();
        if let Some((at, told)) = all
            .iter()
            .rfind(|(_, told)| told.ends())
            .filter(|_| ends > waits)
        {
            tell(format!("a wait ended, and then once more: {told:?}"), *at);
        }
        found.count("messages", all.len());
    }
    for (at, asked) in past.ops.iter().enumerate() {
        untold(past, at, asked, found);
    }
}

pub fn add(
    past: &Past,
    found: &mut Findings,
    check: &'static str,
    text: String,
    ops: Vec<usize>,
    at: u64,
) {
    let first = ops.first().map(|op| &past.ops[*op]);
    found.add(Finding {
        check,
        text,
        key: first.and_then(|one| Some((one.db, one.request.keys.first()?.clone()))),
        from: at,
        to: at,
        ops,
    });
}

/// The requests that gave a tag, by their call.
pub fn named(past: &Past) -> BTreeMap<Tag, Vec<usize>> {
    let mut named: BTreeMap<Tag, Vec<usize>> = BTreeMap::new();
    for (at, asked) in past.ops.iter().enumerate() {
        if let Some((_, tag)) = &asked.request.notify {
            let tag = (asked.op.conn, tag.clone());
            named.entry(tag).or_default().push(at);
        }
    }
    named
}

/// It was queued, or may have been.
fn may_wait(asked: &Asked) -> bool {
    asked.queued.is_some() || (asked.request.queues && asked.lost())
}

fn wrong(past: &Past, ops: &[usize], at: u64, told: &Told) -> Option<&'static str> {
    match told {
        Told::Granted(token) if *token < FIRST_TOKEN => Some("no token"),
        Told::Wanted => wanted::wrong(past, ops, at),
        Told::Error(text) if text.starts_with(SUPERSEDED) => {
            let ours = ops.first().map(|op| &past.ops[*op])?;
            let newer = |one: &Asked| {
                let again = one.request.once && one.owner == ours.owner && one.db == ours.db;
                again && one.request.keys == ours.request.keys && one.op.call <= at
            };
            let mut others = past.ops.iter().enumerate();
            let taken = others.any(|(other, one)| other != ops[0] && newer(one));
            (!taken).then_some("nobody took its place")
        }
        Told::Error(text) => {
            let code = text.split(' ').next().unwrap_or_default();
            (!CODES.contains(&code)).then_some("an error that nobody told of")
        }
        _ => None,
    }
}

/// A wait that is over, of which nobody was told, though its connection listened.
fn untold(past: &Past, at: usize, asked: &Asked, found: &mut Findings) {
    let (Some(queued), Some(block @ 1..), false) = (asked.queued, asked.waits(), asked.again)
    else {
        return;
    };
    let Some(due) = due(past, asked, queued + block) else {
        return;
    };
    found.checked("silence");
    if asked.op.out == Out::Lost {
        let text = format!("{} was never told how its wait ended", asked.owner);
        add(past, found, "silence", text, vec![at], due);
    }
}
