//! Sums over rounds, and the tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::fault::Fault;
use crate::judge::{Class, Kind};
use crate::round::Outcome;
use crate::rule::Rule;
use crate::world::Told;

#[derive(Default)]
struct Row {
    rounds: u64,
    begun: Vec<f64>,
    back: Vec<f64>,
    /// Without any begun at the new master.
    never: u64,
    near: u64,
    after: u64,
    new: u64,
    not_begun: u64,
    doubles: BTreeMap<(Class, Kind), u64>,
    open: u64,
}

#[derive(Default)]
pub struct Report {
    rows: BTreeMap<(Fault, Rule), Row>,
    told: BTreeMap<(Fault, Kind, String), Told>,
    back: BTreeMap<(Fault, String), u64>,
}

impl Report {
    pub fn add(&mut self, fault: Fault, rule: Rule, outcome: &Outcome) {
        let row = self.rows.entry((fault, rule)).or_default();
        let notes = &outcome.notes;
        let ms = |at: u64| (at as f64 - outcome.fault as f64) / 1000.0;
        row.rounds += 1;
        row.begun.extend(notes.firsts.begun.map(ms));
        row.back.extend(notes.firsts.back.map(ms));
        row.never += u64::from(notes.firsts.begun.is_none());
        let grants = || notes.old_grants.iter().map(|at| ms(*at));
        row.near += grants().filter(|at| at.abs() <= 100.0).count() as u64;
        row.after += grants().filter(|at| *at > 0.0).count() as u64;
        let is_new = |hold: &&crate::judge::Hold| !hold.on_old;
        row.new += notes.holds.iter().filter(is_new).count() as u64;
        row.not_begun += notes.not_begun;
        row.open += outcome.verdict.open;
        for (what, count) in &outcome.verdict.doubles {
            *row.doubles.entry(*what).or_default() += count;
        }
        for ((kind, what), told) in &notes.told {
            let sum = self.told.entry((fault, *kind, what.clone())).or_default();
            sum.count += told.count;
            sum.last_ms = sum.last_ms.max(told.last_ms);
        }
        for (what, count) in &notes.back {
            *self.back.entry((fault, what.clone())).or_default() += count;
        }
    }

    pub fn tables(&self) -> String {
        let mut text = String::from(
            "| fault | rule | rounds | first hold at the new master, ms | first old waiter, ms | grants within 100 ms of the fault | by the old master after it | holds at the new one | WAIT too few | (a) plain, watchdog | (b) plain, watchdog | (c) BLOCK, QUEUE | open |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for ((fault, rule), row) in &self.rows {
            let class = |class, kinds: [Kind; 2]| {
                let count = |kind| row.doubles.get(&(class, kind)).copied().unwrap_or(0);
                format!("{}, {}", count(kinds[0]), count(kinds[1]))
            };
            let own = [Kind::Plain, Kind::Watchdog];
            let never = match row.never {
                0 => String::new(),
                count => format!(" (none in {count})"),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {}{never} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                fault.name(),
                rule.name(),
                row.rounds,
                middle(&row.begun),
                middle(&row.back),
                row.near,
                row.after,
                row.new,
                row.not_begun,
                class(Class::Forgotten, own),
                class(Class::BothSides, own),
                class(Class::Waiter, [Kind::Block, Kind::Queue]),
                row.open
            );
        }
        text.push_str(
            "\n| fault | who | is told | how often | the last after, ms |\n|---|---|---|---|---|\n",
        );
        for ((fault, kind, what), told) in &self.told {
            let who = match kind {
                Kind::Plain => "asks, plain",
                Kind::Watchdog => "asks, WATCHDOG",
                Kind::Block => "waits, BLOCK",
                Kind::Queue => "waits, QUEUE",
            };
            let name = fault.name();
            let _ = writeln!(
                text,
                "| {name} | {who} | {what} | {} | {:.0} |",
                told.count, told.last_ms
            );
        }
        text.push_str("\n| fault | at the new master | how often |\n|---|---|---|\n");
        for ((fault, what), count) in &self.back {
            let _ = writeln!(text, "| {} | {what} | {count} |", fault.name());
        }
        text
    }
}

/// The median, and the most.
fn middle(all: &[f64]) -> String {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    match all.last() {
        Some(most) => format!("{:.0}, {most:.0}", all[all.len() / 2]),
        None => "-".to_owned(),
    }
}
