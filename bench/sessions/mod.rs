//! Very many waits of one connection: queued, granted in order, and ended by its close,
//! over one lock and over as many locks. How long another client waits meanwhile.

mod ours;
mod theirs;

use crate::load::Outcome;
use crate::options::Options;
use crate::report::{Report, Table};
use crate::waits::{Comparison, Waits, COLUMNS, NOTES};

/// A PING waits no longer than this, in ms, beyond the like.
const TARGET_MS: f64 = 10.0;

/// What is done to the waits, and the like of it on a server without the module.
const WORK: [(&str, &str); 6] = [
    ("n waits queued for one lock", "RPUSH of n"),
    (
        "n grants of one lock, one after the other",
        "n PUBLISH to oneself",
    ),
    ("close with n waits for one lock", "a server at rest"),
    ("n waits queued for n locks", "RPUSH of n"),
    (
        "n RELEASEs of n locks, each to a wait",
        "n PUBLISH, pipelined",
    ),
    ("close with n waits for n locks", "a server at rest"),
];

const RULES: [&str; 3] = [
    "Who is granted one lock learns of it before it releases; n locks are released by their",
    "holder, pipelined. A grant out of order, or one that is missing, ends the",
    "benchmark.",
];

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = options.count(100_000, 4_000);
    let mut all = WORK.map(|(name, like)| Comparison::new(name, count, like, TARGET_MS));
    for _ in 0..options.count(3, 1) {
        let ours: [[Waits; 3]; 2] = [
            ours::one_lock(options, count)?,
            ours::many_locks(options, count)?,
        ];
        let theirs = theirs::all(options, count)?;
        for (one, waits) in all.iter_mut().zip(ours.into_iter().flatten()) {
            one.ours(waits);
        }
        for (one, waits) in all.iter_mut().zip(theirs) {
            one.theirs(waits);
        }
    }
    let mut table = Table::new("Many queued waiters of one connection", &COLUMNS);
    for one in all {
        one.print(&mut table, report);
    }
    for note in NOTES.into_iter().chain(RULES) {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}

/// An owner as programs name theirs: host, process, uuid.
pub fn owner(number: usize) -> String {
    format!("web1:4711:6f0c9a52-0b1d-4c63-9f8e-{number:012x}")
}
