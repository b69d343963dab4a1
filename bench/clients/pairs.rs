//! A free lock taken and released, beside two round trips of the same library.

use super::{called, Built};
use crate::load::{Outcome, Server};
use crate::options::Options;
use crate::report::{Report, Table, Target};
use crate::stats::median;

/// Beside two round trips.
const MOST: f64 = 1.1;

const NOTES: [&str; 2] = [
    "One worker, nobody else: acquire and release through the client, and PING by the same",
    "library on a connection of the same kind, in turns. The ratio is the median over them.",
];

/// Measures each language and prints.
pub fn measure(there: &[Built], options: &Options, report: &mut Report) -> Outcome<()> {
    let title = "Clients: a free lock, acquired and released";
    let columns = ["by", "us a pair", "us for two PINGs", "ratio", "target", ""];
    let mut table = Table::new(title, &columns);
    for built in there {
        let language = built.language;
        let server = Server::start(&options.server, options.module.as_deref())?;
        let mut crew = built.start("rlock", &server, [1, 1])?;
        let ms = options.millis(1_500, 300).as_millis();
        // The first turn warms up.
        let mut turns = Vec::new();
        for _ in 0..=options.count(5, 1) {
            let pings = crew.tell(&format!("pings {ms}"))? as f64 / 500.0;
            let pair = crew.tell(&format!("pairs {ms}"))? as f64 / 1000.0;
            turns.push((pair, pings));
        }
        let turns = turns.split_off(1);
        let of = |what: fn(&(f64, f64)) -> f64| median(&turns.iter().map(what).collect::<Vec<_>>());
        let ratio = of(|(pair, pings)| pair / pings);
        let what = format!("{}: acquire and release / two PINGs", language.name);
        let verdict = report.judge(&what, ratio, Target::AtMost(MOST));
        let mut row = vec![called(language, language.ours)];
        row.push(format!("{:.1}", of(|turn| turn.0)));
        row.push(format!("{:.1}", of(|turn| turn.1)));
        row.push(format!("{ratio:.2}"));
        row.extend(verdict);
        table.row(row);
    }
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}
