//! What was done and found, summed over rounds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::copies::Done;
use crate::crash::{Outcome, MODES};

#[derive(Default)]
struct Row {
    rounds: u64,
    requests: u64,
    acked: u64,
    waited: u64,
    saves: u64,
    cut: u64,
    back: Vec<u64>,
    held: u64,
    lost: u64,
    doubles: u64,
    repeated: u64,
    findings: usize,
}

#[derive(Default)]
pub struct Report {
    crashes: BTreeMap<&'static str, Row>,
    copies: Done,
    sets: u64,
    findings: u64,
}

/// So much of a finding is shown; the rest is in its folder.
const SHOWN: usize = 4000;

impl Report {
    pub fn is_clean(&self) -> bool {
        self.findings == 0
    }

    /// What was found.
    pub fn crash(&mut self, name: &'static str, outcome: Outcome) -> Vec<String> {
        let verdict = outcome.verdict;
        let row = self.crashes.entry(name).or_default();
        row.rounds += 1;
        row.requests += outcome.requests;
        row.acked += verdict.acked;
        row.waited += outcome.waited;
        row.saves += outcome.saves;
        row.cut += outcome.cut;
        row.back.push(verdict.lost_us / 1000);
        row.held += verdict.held;
        row.lost += verdict.holds_lost;
        row.doubles += outcome.doubles;
        row.repeated += outcome.repeated;
        row.findings += verdict.findings.len();
        verdict.findings
    }

    pub fn copies(&mut self, done: Done) -> Vec<String> {
        self.sets += 1;
        let all = &mut self.copies;
        all.bouts += done.bouts;
        all.requests += done.requests;
        all.waited += done.waited;
        all.replicas += done.replicas;
        all.aofs += done.aofs;
        all.keys += done.keys;
        all.syncs.add(done.syncs);
        for (act, count) in done.acts {
            *all.acts.entry(act).or_default() += count;
        }
        done.findings
    }

    /// Says what was found in a round, and keeps its files; else they go.
    pub fn found(&mut self, seed: u64, round: u64, dir: &Path, findings: Vec<String>) {
        if findings.is_empty() {
            let _ = fs::remove_dir_all(dir);
            return;
        }
        self.findings += findings.len() as u64;
        let _ = fs::create_dir_all(dir);
        let _ = fs::write(dir.join("findings"), findings.join("\n"));
        for text in findings.iter().take(5) {
            let shown: String = text.chars().take(SHOWN).collect();
            println!("FOUND: {shown}");
        }
        println!(
            "{} findings in round {round}, SEED={seed} ROUND={round} repeats it; logs and all of them: {}",
            findings.len(),
            dir.display()
        );
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.crashes.is_empty() {
            self.crash_table(&mut text);
        }
        if self.sets > 0 {
            self.copies_lines(&mut text);
        }
        let _ = write!(text, "{} findings", self.findings);
        text
    }

    fn crash_table(&self, text: &mut String) {
        text.push_str("| killed | rounds | requests | acknowledged steps | grants to waiters | saves, rewrites | bytes cut | state back, ms (median, most) | held | lost | held twice | tokens repeated | findings |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for (name, row) in MODES
            .iter()
            .filter_map(|mode| self.crashes.get_key_value(mode.name))
        {
            let mut back = row.back.clone();
            back.sort_unstable();
            let _ = writeln!(
                text,
                "| {name} | {} | {} | {} | {} | {} | {} | {}, {} | {} | {} | {} | {} | {} |",
                row.rounds,
                row.requests,
                row.acked,
                row.waited,
                row.saves,
                row.cut,
                back[back.len() / 2],
                back[back.len() - 1],
                row.held,
                row.lost,
                row.doubles,
                row.repeated,
                row.findings
            );
        }
    }

    fn copies_lines(&self, text: &mut String) {
        let all = &self.copies;
        let _ = writeln!(
            text,
            "copies: {} sets of servers, {} bouts, {} requests, {} grants to waiters, {} full syncs, {} partial, {} refused; compared: {} replicas, {} AOFs, masters with {} keys",
            self.sets,
            all.bouts,
            all.requests,
            all.waited,
            all.syncs.full,
            all.syncs.partial,
            all.syncs.refused,
            all.replicas,
            all.aofs,
            all.keys
        );
        let acts: Vec<String> = all
            .acts
            .iter()
            .map(|(act, count)| format!("{act:?} {count}"))
            .collect();
        let _ = writeln!(text, "done to them: {}", acts.join(", "));
    }
}
