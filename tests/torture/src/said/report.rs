//! The report for a reader: each finding with what happened around it, and how much was looked at.

use std::collections::BTreeMap;

use rlock_torture::saw::{Ask, Fault};

use crate::finding::{Finding, Findings, CHECKS};
use crate::past::Past;

/// Of each check so many are told in full.
const IN_FULL: usize = 3;
const LINES: usize = 60;
/// Before the hold and after the finding, us.
const AROUND: u64 = 1_000_000;

pub fn print(past: &Past, found: &Findings) {
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &found.all {
        let count = told.entry(finding.check).or_default();
        *count += 1;
        if *count <= IN_FULL {
            tell(past, finding);
        }
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
    println!("  {}, at {}", past.round.repeat, time(past, finding.at));
    let holds: Vec<_> = finding.holds.iter().map(|at| &past.holds[*at]).collect();
    let Some(first) = holds.iter().map(|hold| hold.call).min() else {
        return;
    };
    let names: Vec<&str> = holds.iter().map(|hold| hold.name.as_str()).collect();
    let drivers: Vec<usize> = holds.iter().map(|hold| hold.driver).collect();
    let (from, to) = (first.saturating_sub(AROUND), finding.at + AROUND);
    let mut lines: Vec<(u64, String)> = Vec::new();
    let asks = past.asks.iter();
    let asks = asks.filter(|ask| names.contains(&ask.hold.as_str()));
    lines.extend(asks.map(|ask| (ask.call, ask_line(past, ask))));
    for event in holds.iter().flat_map(|hold| &hold.events) {
        let (at, reason) = (time(past, event.at), &event.reason);
        let text = format!("{at} EVENT {} is lost: {reason}", event.hold);
        lines.push((event.at, text));
    }
    for fault in &past.faults {
        let its = fault.driver.is_none_or(|driver| drivers.contains(&driver));
        if its && fault.end >= from && fault.begin <= to {
            lines.push((fault.begin, fault_line(past, fault)));
        }
    }
    for wire in past
        .wires
        .iter()
        .filter(|wire| drivers.contains(&wire.driver))
    {
        if let Some(closed) = wire.closed.filter(|at| *at >= from && *at <= to) {
            let (at, opened) = (time(past, closed), time(past, wire.opened));
            let text = format!("{at} # CLOSED a wire of {} of {opened}", wire.driver);
            lines.push((closed, text));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    for (_, line) in lines.iter().take(LINES) {
        println!("    {line}");
    }
}

fn time(past: &Past, at: u64) -> String {
    format!("{:.6}", at.saturating_sub(past.round.at) as f64 / 1e6)
}

fn ask_line(past: &Past, ask: &Ask) -> String {
    let end = ask.reply.map_or("-".to_owned(), |at| time(past, at));
    let name = &past.round.drivers[ask.driver];
    let begin = time(past, ask.call);
    format!(
        "{begin} .. {end} {name} {} {} {} -> {}",
        ask.what, ask.hold, ask.words, ask.out
    )
}

fn fault_line(past: &Past, fault: &Fault) -> String {
    let (begin, end) = (time(past, fault.begin), time(past, fault.end));
    let whom = fault
        .driver
        .map_or("server".to_owned(), |at| format!("driver {at}"));
    let key = fault.key.as_deref().unwrap_or_default();
    format!("{begin} .. {end} # FAULT {} of {whom} {key}", fault.kind)
}

fn summary(past: &Past, found: &Findings) {
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in &past.faults {
        *faults.entry(&fault.kind).or_default() += 1;
    }
    let faults: Vec<String> = faults
        .iter()
        .map(|(kind, n)| format!("{kind} {n}"))
        .collect();
    let mut clients: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for ask in &past.asks {
        let client = clients.entry(&past.round.drivers[ask.driver]);
        client.or_default()[0] += 1;
    }
    for hold in &past.holds {
        let client = clients.entry(&past.round.drivers[hold.driver]);
        let [_, held, uses, again, lost] = client.or_default();
        *held += 1;
        *uses += usize::from(hold.sticky);
        *again += usize::from(hold.name.contains('~'));
        let told = hold.events.len() + hold.states.len() + hold.others.len();
        *lost += usize::from(told > 0);
    }
    println!(
        "{}, AOF always; wires closed {}; {}",
        past.round.server,
        past.wires.len(),
        faults.join(", ")
    );
    for (name, [asks, held, uses, again, lost]) in clients {
        println!(
            "  {name}: {asks} requests, {held} holds ({uses} of them uses, {again} when they had given way), \
             {lost} of them lost"
        );
    }
    let checks = CHECKS.iter().map(|check| {
        let count = found.counts.get(check).copied().unwrap_or(0);
        format!("{check} {count}")
    });
    let checks: Vec<String> = checks.collect();
    println!("checked: {}; found: {}", checks.join(", "), found.all.len());
}
