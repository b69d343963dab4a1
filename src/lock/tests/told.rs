//! What of the notices of a decision the tests look at.

use crate::lock::{Event, Key, Notice, Outcome, WaiterId};

pub fn answers(told: &[Notice]) -> Vec<(WaiterId, Outcome)> {
    let answer = |notice: &Notice| match notice {
        Notice::Answer {
            waiter, outcome, ..
        } => Some((*waiter, outcome.clone())),
        _ => None,
    };
    told.iter().filter_map(answer).collect()
}

pub fn events(told: &[Notice]) -> Vec<(Key, Event)> {
    let event = |notice: &Notice| match notice {
        Notice::Event { key, event } => Some((key.clone(), *event)),
        _ => None,
    };
    told.iter().filter_map(event).collect()
}
