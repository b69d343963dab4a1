//! How often each rule may be broken for now, so that it never gets more.

use std::collections::BTreeMap;

use crate::{Breach, Rule};

/// How often each rule is broken; rules that are not there are kept.
pub type Counts = BTreeMap<Rule, usize>;

/// What is allowed, from lines like `circle 12`; `#` begins a remark.
#[derive(Debug, Default)]
pub struct Ratchet {
    allowed: Counts,
}

impl Ratchet {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut allowed = Counts::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = || format!("{line:?} is no rule and a number");
            let (name, count) = line.split_once(' ').ok_or_else(wrong)?;
            let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name);
            let count = count.trim().parse().map_err(|_| wrong())?;
            allowed.insert(rule.ok_or_else(wrong)?, count);
        }
        Ok(Ratchet { allowed })
    }

    pub fn allowed(&self, rule: Rule) -> usize {
        self.allowed.get(&rule).copied().unwrap_or_default()
    }

    /// The rules that are broken more often than is allowed.
    pub fn overrun(&self, counts: &Counts) -> Vec<Rule> {
        let over = |rule: &Rule| count(counts, *rule) > self.allowed(*rule);
        Rule::ALL.into_iter().filter(over).collect()
    }

    /// The rules that are broken less often, so that less may be allowed.
    pub fn slack(&self, counts: &Counts) -> Vec<Rule> {
        let under = |rule: &Rule| count(counts, *rule) < self.allowed(*rule);
        Rule::ALL.into_iter().filter(under).collect()
    }
}

/// How often one rule is broken.
pub fn count(counts: &Counts, rule: Rule) -> usize {
    counts.get(&rule).copied().unwrap_or_default()
}

/// Counts breaches by their rules.
pub fn counts(breaches: &[Breach]) -> Counts {
    let mut counts = Counts::new();
    for breach in breaches {
        *counts.entry(breach.rule).or_default() += 1;
    }
    counts
}
