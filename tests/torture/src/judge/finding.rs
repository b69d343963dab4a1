//! What was found, and how much was looked at.

use std::collections::BTreeMap;

use crate::past::Lock;

/// All checks that there are, so that one that never had anything to do shows.
pub const CHECKS: [&str; 20] = [
    "exclusion",
    "permits",
    "held",
    "messages",
    "silence",
    "lost",
    "silent",
    "wanted",
    "cancel",
    "once",
    "list",
    "order",
    "tokens",
    "answers",
    "time-outs",
    "idle",
    "refused",
    "counters",
    "copies",
    "crashes",
];

#[derive(Clone, Debug)]
pub struct Finding {
    pub check: &'static str,
    pub text: String,
    /// The lock it is about.
    pub key: Option<Lock>,
    /// The operations that show it.
    pub ops: Vec<usize>,
    pub from: u64,
    pub to: u64,
}

#[derive(Default)]
pub struct Findings {
    pub all: Vec<Finding>,
    pub counts: BTreeMap<&'static str, usize>,
    /// How many holds were overlapped by others, which a fault of that kind excused.
    pub excused: BTreeMap<String, usize>,
}

impl Findings {
    pub fn add(&mut self, finding: Finding) {
        self.all.push(finding);
    }

    pub fn excuse(&mut self, kind: &str) {
        *self.excused.entry(kind.to_owned()).or_default() += 1;
    }

    /// The first findings of each check, so many.
    pub fn first_of_each(&self, most: usize) -> impl Iterator<Item = &Finding> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        self.all.iter().filter(move |finding| {
            let count = seen.entry(finding.check).or_default();
            *count += 1;
            *count <= most
        })
    }

    /// Something was looked at by a check.
    pub fn checked(&mut self, check: &'static str) {
        self.count(check, 1);
    }

    pub fn count(&mut self, check: &'static str, many: usize) {
        *self.counts.entry(check).or_default() += many;
    }
}
