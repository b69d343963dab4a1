//! Owners that wait for each other: which request is refused, which is let past, and what
//! is no ring.

mod gone;
mod modes;
mod rings;
mod storm;
mod way_out;

use redis::Value;

use crate::support::{error, LONG};

/// What is told of a ring, as the documents write it: names without quotes.
#[track_caller]
fn ring(reply: Value) -> String {
    let line = error(reply);
    assert!(line.starts_with("DEADLOCK "), "{line}");
    assert!(line.len() <= 512 && !line.contains('\n'), "{line}");
    line.replace('\'', "")
}

/// A request that waits, or closes a ring.
fn block(key: &str, owner: &str) -> String {
    format!("RLOCK.ACQUIRE {key} {owner} {LONG} BLOCK 0")
}
