//! Whoever was granted a lock after another has the greater token.

use std::collections::HashMap;

use crate::finding::Findings;
use crate::hold::Mode;
use crate::past::Past;

pub fn check(past: &Past, found: &mut Findings) {
    missing(past, found);
    after_the_answer(past, found);
    after_the_hold(past, found);
}

/// Only Redisson gives none, and a use that asks for none has none.
fn missing(past: &Past, found: &mut Findings) {
    for (at, hold) in past.holds.iter().enumerate() {
        let name = past.round.drivers.get(hold.driver);
        if hold.token.is_none() && hold.has_token && name.is_none_or(|name| name != "redisson") {
            let text = format!("{} was granted without a token", hold.name);
            found.add("tokens", text, &[at], hold.start);
        }
    }
}

fn number(past: &Past, hold: usize) -> i64 {
    past.holds[hold].token.unwrap_or_default()
}

/// Asked for after the other was granted.
fn after_the_answer(past: &Past, found: &mut Findings) {
    let mut locks: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, hold) in past.holds.iter().enumerate() {
        if hold.token.is_none() {
            continue;
        }
        for key in &hold.keys {
            locks.entry(key).or_default().push(at);
        }
    }
    for (key, of_lock) in locks {
        let mut by_call = of_lock.clone();
        by_call.sort_by_key(|at| past.holds[*at].call);
        // `of_lock` is in the order of grants.
        let mut granted = of_lock.iter().peekable();
        let mut greatest: Option<usize> = None;
        for at in by_call {
            let hold = &past.holds[at];
            while let Some(other) = granted.next_if(|other| past.holds[**other].start < hold.call) {
                let token = greatest.and_then(|at| past.holds[at].token);
                if past.holds[*other].token > token {
                    greatest = Some(*other);
                }
            }
            if hold.sticky && !hold.ended_well() {
                continue;
            }
            found.checked("tokens");
            if let Some(other) = greatest.filter(|other| past.holds[*other].token >= hold.token) {
                let (first, second) = (number(past, other), number(past, at));
                let text = format!("{key}: after {first} came {second}, which was asked for later");
                found.add("tokens", text, &[other, at], hold.start);
            }
        }
    }
}

/// Held alone after another held it alone.
fn after_the_hold(past: &Past, found: &mut Findings) {
    for (key, claims) in past.claims() {
        let alone = claims
            .iter()
            .filter(|claim| matches!(claim.mode, Mode::Plain | Mode::Write))
            .filter(|claim| past.holds[claim.hold].token.is_some());
        let mut last: Option<usize> = None;
        for claim in alone {
            found.checked("tokens");
            let token = past.holds[claim.hold].token;
            if let Some(other) = last.filter(|other| past.holds[*other].token >= token) {
                let (first, second) = (number(past, other), number(past, claim.hold));
                let text = format!("{key}: after {first} was held, {second} was");
                found.add("tokens", text, &[other, claim.hold], claim.from);
            }
            last = Some(claim.hold);
        }
    }
}
