//! What was found, and how much was looked at.

use std::collections::BTreeMap;

/// All checks that there are, so that one that never had anything to do shows.
pub const CHECKS: [&str; 13] = [
    "exclusion",
    "permits",
    "tokens",
    "deadline",
    "notified",
    "event",
    "false-loss",
    "silent",
    "held",
    "answers",
    "waits",
    "left",
    "ends",
];

#[derive(Clone, Debug)]
pub struct Finding {
    pub check: &'static str,
    pub text: String,
    /// The holds that it is about.
    pub holds: Vec<usize>,
    pub at: u64,
}

#[derive(Default)]
pub struct Findings {
    pub all: Vec<Finding>,
    pub counts: BTreeMap<&'static str, usize>,
}

impl Findings {
    pub fn add(&mut self, check: &'static str, text: String, holds: &[usize], at: u64) {
        let holds = holds.to_vec();
        self.all.push(Finding {
            check,
            text,
            holds,
            at,
        });
    }

    /// Something was looked at by a check.
    pub fn checked(&mut self, check: &'static str) {
        *self.counts.entry(check).or_default() += 1;
    }
}
