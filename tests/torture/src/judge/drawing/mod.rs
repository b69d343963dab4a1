//! A drawing of a lock's history around each finding: a row for each owner, what it
//! waited for, held and was told, and what was done to the server meanwhile. One file
//! that needs nothing else.

mod rows;
mod svg;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::finding::{Finding, Findings};
use crate::past::Past;
use crate::report::IN_FULL;
use svg::{escape, Svg};

/// Before and after a finding, us; and no more than this.
const AROUND: u64 = 120_000;
const LONGEST: u64 = 4_000_000;
const MOST_ROWS: usize = 40;

const STYLE: &str = "body{font:14px sans-serif;margin:16px;color:#222}
h2{font-size:16px;margin:24px 0 4px}p{margin:2px 0 8px;color:#555}
svg{border:1px solid #ccc;background:#fff}";

/// Draws the first findings of each check into one file beside the history.
pub fn draw(past: &Past, found: &Findings, history: &Path) -> io::Result<PathBuf> {
    let path = history.with_extension("html");
    let mut text = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style><h1>{0}</h1>\n<p>{1} ({2}, {3}). To repeat: {4}</p>\n<p>{LEGEND}</p>\n",
        escape(&format!("torture: seed {} round {}", past.round.seed, past.round.round)),
        escape(&past.round.server),
        escape(&past.round.topology),
        escape(&past.round.persistence),
        escape(&past.round.repeat),
    );
    for finding in found.first_of_each(IN_FULL) {
        text += &one(past, finding);
    }
    fs::write(&path, text)?;
    Ok(path)
}

const LEGEND: &str = "A row is an owner with its connections. Thick and green: it surely held \
    the lock; pale: it would have, but for what was done to it. Thin and grey: it waited. Blue: \
    a request for the lock; violet: a release or a renewal; red: it was refused, or lost. \
    Triangles: messages to a session, the red ones of a loss. Orange: what was done to the lock \
    or its server. Whatever is drawn tells more under the pointer.";

fn one(past: &Past, finding: &Finding) -> String {
    let to = finding.to.min(finding.from + LONGEST) + AROUND;
    let ops = finding.ops.iter().map(|at| past.ops[*at].op.call);
    let first = ops.min().unwrap_or(finding.from).min(finding.from);
    let from = first.max(to.saturating_sub(LONGEST)).saturating_sub(AROUND);
    let mut rows = rows::of(past, finding, (from, to));
    rows.sort_by_key(|row| (!row.marked, row.first.abs_diff(finding.from)));
    rows.truncate(MOST_ROWS);
    rows.sort_by_key(|row| row.first);
    let mut svg = Svg::new(from, to, rows.len());
    let lock = finding
        .key
        .as_ref()
        .map_or(String::new(), |(db, key)| format!("on {key} (db {db})"));
    faults(past, finding, &mut svg, (from, to));
    svg.across("found", (finding.from, finding.to), 0, "found");
    for (at, row) in rows.iter().enumerate() {
        svg.row(at, &row.name, row.marked);
        row.draw(past, at, &mut svg);
    }
    format!(
        "<h2>{}: {}</h2><p>{lock}</p>\n{}",
        finding.check,
        escape(&finding.text),
        svg.finish(past.round.at)
    )
}

fn faults(past: &Past, finding: &Finding, svg: &mut Svg, (from, to): (u64, u64)) {
    let mut level = 1;
    for fault in &past.faults {
        let here = match &finding.key {
            Some((db, key)) => {
                let ours = fault.keys.iter().any(|one| key.starts_with(one));
                fault.keys.is_empty() || (ours && fault.db == *db)
            }
            None => true,
        };
        if here && fault.end >= from && fault.begin <= to && fault.kind != "rest" {
            let name = format!("{} {} {}", fault.kind, fault.keys.join(" "), fault.note);
            let name: String = name.trim().chars().take(60).collect();
            svg.across("fault", (fault.begin, fault.end), level, &name);
            level = level % 4 + 1;
        }
    }
}
