//! The report for a reader: each finding with what happened around it, and at the end
//! how much was looked at.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rlock_torture::history::{Fault, Out};
use rlock_torture::verdict::Verdict;

use crate::finding::{Finding, Findings, CHECKS};
use crate::past::{Asked, Past};

/// Of each check so many are told in full.
pub const IN_FULL: usize = 3;
const LINES: usize = 40;
/// Before and after a finding, us.
const AROUND: u64 = 300_000;

pub fn print(past: &Past, found: &Findings) {
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &found.all {
        *told.entry(finding.check).or_default() += 1;
    }
    for finding in found.first_of_each(IN_FULL) {
        tell(past, finding);
    }
    for (check, count) in told.iter().filter(|(_, count)| **count > IN_FULL) {
        println!("... and {} more of {check}", count - IN_FULL);
    }
    if !found.all.is_empty() {
        println!("to repeat: {}", past.round.repeat);
    }
    summary(past, found);
}

fn tell(past: &Past, finding: &Finding) {
    println!("\nFOUND by {}: {}", finding.check, finding.text);
    println!(
        "  seed {} round {}, {} ({}), at {}",
        past.round.seed,
        past.round.round,
        past.round.server,
        past.round.topology,
        time(past, finding.from)
    );
    for at in &finding.ops {
        println!("  {}", line(past, &past.ops[*at], "*"));
    }
    let Some((db, key)) = &finding.key else {
        return;
    };
    let (from, to) = (finding.from.saturating_sub(AROUND), finding.to + AROUND);
    let mut lines: Vec<(u64, String)> = Vec::new();
    for (at, asked) in past.ops.iter().enumerate() {
        let here = asked.db == *db && asked.request.keys.contains(key);
        let last = asked.op.reply.unwrap_or(asked.done);
        if here
            && last >= from
            && asked.op.call <= to
            && asked.request.verb != crate::request::Verb::Info
        {
            let mark = if finding.ops.contains(&at) { "*" } else { " " };
            lines.push((asked.op.call, line(past, asked, mark)));
        }
    }
    for fault in &past.faults {
        let here = fault.keys.is_empty() || fault.keys.contains(key);
        if here && fault.end >= from && fault.begin <= to {
            lines.push((fault.begin, fault_line(past, fault)));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    let near = lines.partition_point(|(at, _)| *at < finding.from);
    let first = near
        .saturating_sub(LINES / 2)
        .min(lines.len().saturating_sub(LINES));
    println!("  around it on {key} (db {db}):");
    for (_, line) in lines.iter().skip(first).take(LINES) {
        println!("    {line}");
    }
}

fn time(past: &Past, at: u64) -> String {
    format!("{:.6}", at.saturating_sub(past.round.at) as f64 / 1e6)
}

pub fn line(past: &Past, asked: &Asked, mark: &str) -> String {
    let op = &asked.op;
    let end = match op.reply {
        Some(reply) => time(past, reply),
        None => "-".to_owned(),
    };
    let out = match asked.spoiled.as_ref().unwrap_or(&op.out) {
        Out::Int(number) => number.to_string(),
        Out::Null => "null".to_owned(),
        Out::Error(text) | Out::Text(text) | Out::Other(text) => text.chars().take(90).collect(),
        Out::View(view) => format!("{view:?}"),
        Out::List(_, holders) => format!("{} holders", holders.len()),
        Out::Lost => "(connection lost)".to_owned(),
        Out::Unanswered => "(never answered)".to_owned(),
    };
    let queued = match asked.queued {
        Some(at) => format!(" QUEUED {}", time(past, at)),
        None => String::new(),
    };
    let multi = if op.multi { " (MULTI)" } else { "" };
    let begin = time(past, op.call);
    format!(
        "{mark} {begin} .. {end} c{}{multi} {} ->{queued} {out}",
        op.conn,
        op.args.join(" ")
    )
}

fn fault_line(past: &Past, fault: &Fault) -> String {
    let (begin, end) = (time(past, fault.begin), time(past, fault.end));
    format!(
        "# {begin} .. {end} FAULT {} {} {}",
        fault.kind,
        fault.keys.join(" "),
        fault.note
    )
}

fn summary(past: &Past, found: &Findings) {
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in past.faults.iter().filter(|fault| fault.kind != "rest") {
        *faults.entry(&fault.kind).or_default() += 1;
    }
    let list = |pairs: Vec<String>| {
        if pairs.is_empty() {
            "none".to_owned()
        } else {
            pairs.join(", ")
        }
    };
    let faults = faults
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let checks = CHECKS.iter().map(|check| {
        let count = found.counts.get(check).copied().unwrap_or(0);
        format!("{check} {count}")
    });
    println!(
        "{} ({}, {}): {} operations on {} connections; faults: {}; stalls: {}",
        past.round.server,
        past.round.topology,
        past.round.persistence,
        past.ops.len(),
        past.conns.len(),
        list(faults),
        past.stalls.len()
    );
    let excused = found.excused.iter();
    let excused = excused.map(|(kind, count)| format!("{kind} {count}"));
    match past.strict {
        Some(settings) => println!(
            "settings that excuse nothing ({settings}): {} of {} holds were held by others at once",
            twice(found),
            holds(found)
        ),
        None => println!(
            "holds that others had at once, of {}, excused by faults: {}",
            holds(found),
            list(excused.collect())
        ),
    }
    println!(
        "checked: {}; found: {}",
        list(checks.collect()),
        found.all.len()
    );
}

/// How many holds lasted for a while, and how many of them others had too.
fn holds(found: &Findings) -> usize {
    found.counts.get("exclusion").copied().unwrap_or(0)
}

fn twice(found: &Findings) -> usize {
    let all = found.all.iter();
    all.filter(|one| one.check == "exclusion").count()
}

/// What the run sums up at its end, beside the history.
pub fn write(past: &Past, found: &Findings, history: &Path) -> io::Result<()> {
    let verdict = Verdict {
        settings: past.strict.map(str::to_owned),
        holds: holds(found),
        twice: twice(found),
        excused: found.excused.clone(),
    };
    verdict.write(history)
}
