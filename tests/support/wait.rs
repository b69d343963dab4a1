//! Waiting for a condition. The only place in the tests that sleeps.

use std::thread;
use std::time::{Duration, Instant};

/// Far more than anything here takes, also on a busy machine.
pub const BOUND: Duration = Duration::from_secs(30);

const STEP: Duration = Duration::from_millis(3);

/// Waits until `condition` holds; panics after [`BOUND`].
#[track_caller]
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_within(BOUND, what, condition);
}

/// Waits until `condition` holds; panics after `bound`.
#[track_caller]
pub fn eventually_within(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    if poll(bound, || condition().then_some(())).is_none() {
        panic!("waited {bound:?} in vain: {what}");
    }
}

/// Waits until `attempt` gives something; panics after [`BOUND`].
#[track_caller]
pub fn wait_for<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    match poll(BOUND, attempt) {
        Some(value) => value,
        None => panic!("waited {BOUND:?} in vain: {what}"),
    }
}

/// Tries until `attempt` gives something, at least once, at most for `bound`.
pub fn poll<T>(bound: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + bound;
    loop {
        let found = attempt();
        if found.is_some() || Instant::now() >= end {
            return found;
        }
        thread::sleep(STEP);
    }
}
