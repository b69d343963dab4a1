//! On a server without the module: one lock from hand to hand, and a free one, beside what the
//! users of each language have now.

use super::handover::{contest, overlapped, tenths, Crowd, HOW};
use super::{called, Built};
use crate::load::{Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};
use crate::stats::median;

/// Of the best peer's hand-overs among processes, and of its free locks.
const HAND_OVERS: f64 = 1.0;
const FREE: f64 = 0.95;

const CROWDS: [&str; 3] = [
    "All on one server without the module; rlock's clients have loaded the function library there.",
    "Longest: for how long a process had no turn, at the most. The ratio is to the best peer of the",
    "language; of two clients of rlock's, of which a program has one, it is the better one's.",
];

const PAIRS: [&str; 2] = [
    "One worker, nobody else: acquire and release, in turns with the peers; medians. The ratio is of",
    "the rates, of the best of rlock's to the best peer of the language.",
];

/// Measures each language and prints.
pub fn measure(
    there: &[Built],
    skipped: &[String],
    options: &Options,
    report: &mut Report,
) -> Outcome<()> {
    let size = options.count(100, 5);
    let title = format!("Clients without the module: hand-overs a second among {size} processes");
    let columns = [
        "by",
        "hand-overs",
        "longest, ms",
        "x best peer",
        "target",
        "",
    ];
    let mut crowds = Table::new(title, &columns);
    let columns = ["by", "us a pair", "x best peer", "target", ""];
    let mut pairs = Table::new("Clients without the module: a free lock", &columns);
    HOW.iter()
        .chain(&CROWDS)
        .for_each(|note| crowds.note(*note));
    for built in there {
        hand_overs(built, size, options, report, &mut crowds)?;
        free_locks(built, options, report, &mut pairs)?;
    }
    PAIRS.into_iter().for_each(|note| pairs.note(note));
    skipped.iter().for_each(|line| pairs.note(line.as_str()));
    report.print(&crowds);
    report.print(&pairs);
    Ok(())
}

/// What stands first in each language's command line, and in words.
fn sides(built: &Built) -> Vec<(&'static str, &'static str)> {
    let language = built.language;
    let ours = [("rlock", language.ours)].into_iter();
    ours.chain(language.also.iter().copied())
        .chain(language.peers.iter().copied())
        .collect()
}

/// How many of the sides are rlock's.
fn own(built: &Built) -> usize {
    1 + built.language.also.len()
}

fn hand_overs(
    built: &Built,
    size: usize,
    options: &Options,
    report: &mut Report,
    table: &mut Table,
) -> Outcome<()> {
    let many = Crowd {
        processes: size,
        workers: 1,
    };
    let mut all = Vec::new();
    for (side, words) in sides(built) {
        let server = Server::start(&options.server, None)?;
        let contest = contest(built, side, &server, many, options)?;
        if all.len() < own(built) && contest.overlaps > 0 {
            return Err(format!("{} turns with rlock overlapped others", contest.overlaps).into());
        }
        let words = called(built.language, words);
        overlapped(&words, contest.overlaps)
            .into_iter()
            .for_each(|line| table.note(line));
        all.push((words, contest.rate, contest.longest));
    }
    let rates: Vec<f64> = all.iter().map(|(_, rate, _)| *rate).collect();
    let what = format!(
        "{}: hand-overs without the module / by the best peer",
        built.language.name
    );
    let (best, verdict) = compare(&rates, own(built), report, &what, HAND_OVERS);
    for (at, (words, rate, longest)) in all.into_iter().enumerate() {
        let mut row = vec![words, tenths(rate), grouped(longest)];
        row.extend(if at == best {
            verdict.clone()
        } else {
            Vec::new()
        });
        table.row(row);
    }
    Ok(())
}

fn free_locks(
    built: &Built,
    options: &Options,
    report: &mut Report,
    table: &mut Table,
) -> Outcome<()> {
    let server = Server::start(&options.server, None)?;
    let sides = sides(built);
    let mut crews = Vec::new();
    for (side, _) in &sides {
        crews.push(built.start(side, &server, [1, 1])?);
    }
    let ms = options.millis(1_500, 300).as_millis();
    let mut took = vec![Vec::new(); sides.len()];
    for turn in 0..=options.count(5, 1) {
        for (crew, took) in crews.iter_mut().zip(&mut took) {
            let us = crew.tell(&format!("pairs {ms}"))? as f64 / 1000.0;
            // The first turn warms up.
            if turn > 0 {
                took.push(us);
            }
        }
    }
    let us: Vec<f64> = took.iter().map(|took| median(took)).collect();
    let per_second: Vec<f64> = us.iter().map(|us| 1e6 / us).collect();
    let what = format!(
        "{}: free locks without the module / by the best peer",
        built.language.name
    );
    let (best, verdict) = compare(&per_second, own(built), report, &what, FREE);
    for (at, (_, words)) in sides.iter().enumerate() {
        let mut row = vec![called(built.language, words), format!("{:.1}", us[at])];
        row.extend(if at == best {
            verdict.clone()
        } else {
            Vec::new()
        });
        table.row(row);
    }
    Ok(())
}

/// The best of rlock's, which come first, and it beside the best of the others, as a table's cells.
fn compare(
    rates: &[f64],
    own: usize,
    report: &mut Report,
    what: &str,
    target: f64,
) -> (usize, Vec<String>) {
    let (ours, theirs) = rates.split_at(own);
    let best = (1..own).fold(0, |best, at| if ours[at] > ours[best] { at } else { best });
    let peer = theirs.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let ratio = ours[best] / peer;
    let mut cells = vec![format!("{ratio:.2}")];
    cells.extend(report.judge(what, ratio, Target::AtLeast(target)));
    (best, cells)
}
