//! A listing of very many locks, page by page: how long another client waits meanwhile,
//! beside SCAN through as many keys on a server without the module.

use std::time::Instant;

use crate::held;
use crate::load::{bulk, command, parts, Connection, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table};
use crate::stats::quantile;
use crate::waits::{beside, Comparison, COLUMNS, NOTES};

/// A PING waits no longer than this, in ms, beyond the like.
const TARGET_MS: f64 = 5.0;

/// How many holders are looked at for a page, and keys by SCAN.
const COUNTS: [(&str, &[&str]); 2] = [
    ("LIST of n locks, COUNT left away", &[]),
    ("LIST of n locks, COUNT 250, the most", &["COUNT", "250"]),
];

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = options.count(1_000_000, 20_000);
    let ours = Server::start(&options.server, options.module.as_deref())?;
    held::hold(&mut ours.connect()?, count)?;
    let theirs = Server::start(&options.server, None)?;
    held::hashes(&mut theirs.connect()?, count)?;

    let mut table = Table::new("LIST of many locks", &COLUMNS);
    for note in NOTES {
        table.note(note);
    }
    table.note(
        "The client asks for one page after the other; SCAN has the same COUNT. That all locks",
    );
    table.note("are listed is looked at.");
    for (name, count_words) in COUNTS {
        let mut comparison = Comparison::new(name, count, "SCAN of n keys", TARGET_MS);
        let mut pages = Vec::new();
        for _ in 0..options.count(3, 1) {
            let mut client = ours.connect()?;
            let mut listed = 0;
            comparison.ours(beside(&ours, || {
                listed = walk(
                    &mut client,
                    &["RLOCK.LIST", "CURSOR"],
                    count_words,
                    &mut pages,
                )?;
                Ok(())
            })?);
            if listed != count {
                return Err(format!("{listed} of {count} locks were listed").into());
            }
            let mut client = theirs.connect()?;
            comparison.theirs(beside(&theirs, || {
                walk(&mut client, &["SCAN"], count_words, &mut Vec::new()).map(drop)
            })?);
        }
        comparison.print(&mut table, report);
        table.note(format!(
            "{name}: {} pages, each took its client {:.2} ms (p50), {:.2} ms (p99), {:.1} ms at most.",
            grouped(pages.len() as f64),
            quantile(&pages, 0.5),
            quantile(&pages, 0.99),
            quantile(&pages, 1.0),
        ));
    }
    report.print(&table);
    Ok(())
}

/// Asks for all pages; how many entries came. Their times, in ms, are added to `pages`.
fn walk(
    client: &mut Connection,
    ask: &[&str],
    count: &[&str],
    pages: &mut Vec<f64>,
) -> Outcome<usize> {
    let mut cursor = "0".to_owned();
    let mut entries = 0;
    loop {
        let words = [ask, &[&cursor], count].concat();
        let start = Instant::now();
        let page = client.exchange(&command(&words))?;
        pages.push(start.elapsed().as_secs_f64() * 1e3);
        let [next, found] = parts(page)?[..] else {
            return Err("a page is a cursor and an array".into());
        };
        entries += parts(found)?.len();
        bulk(next)?.clone_into(&mut cursor);
        if cursor == "0" {
            return Ok(entries);
        }
    }
}
