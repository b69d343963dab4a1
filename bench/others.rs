//! What commands that have nothing to do with locks lose on a server that has
//! the module loaded. Two servers, with and without it, run the same load in
//! short turns; they are started anew several times, since two processes of the
//! same program differ by a little too.

mod kind;

use crate::held;
use crate::load::{command, Connection, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table};
use crate::stats::{error_of_median, median};

use kind::{Figures, Kind, Turn};

const LOCKS: usize = 1_000;

/// What the module is doing meanwhile.
const STATES: [&str; 3] = ["unused", "1,000 locks held", "1,000 held, 1 waiter"];
const COLUMNS: [&str; 7] = [
    "module",
    "command",
    "ops/s without",
    "ops/s with",
    "lost %",
    "more CPU %",
    "±",
];

const NOTES: [&str; 4] = [
    "Medians over short turns on both servers, to and fro; the servers are started anew in between.",
    "CPU: the server's processor time for one operation, which other work on the machine disturbs",
    "less than the rate; ± is its 95 % confidence interval. DEL is of existing keys. `--no-module`",
    "compares two servers without the module: what they differ by is noise.",
];

/// Measures all kinds in all states and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let mut kinds = Kind::all(options.depth);
    let states = match options.module {
        Some(_) => &STATES[..],
        None => &["none (noise)"],
    };
    let mut figures: Vec<Vec<Figures>> = Vec::new();
    figures.resize_with(states.len(), || {
        kinds.iter().map(|_| Figures::default()).collect()
    });
    for _ in 0..options.count(12, 1) {
        let plain = Server::start(&options.server, None)?;
        let loaded = Server::start(&options.server, options.module.as_deref())?;
        let mut without = plain.connect()?;
        let mut with = loaded.connect()?;
        for kind in &mut kinds {
            kind.pass(&mut without, &mut Turn::default())?;
            kind.pass(&mut with, &mut Turn::default())?;
        }
        // Lives to the end of the round: the waiter must stay blocked.
        let mut waiter = loaded.connect()?;
        for (state, figures) in figures.iter_mut().enumerate() {
            enter(state, &mut with, &mut waiter)?;
            for _ in 0..2 {
                for (kind, figures) in kinds.iter_mut().zip(figures.iter_mut()) {
                    let times = options.count(2, 1);
                    figures.sample(kind, &mut without, &mut with, times)?;
                }
            }
        }
    }
    print(states, &kinds, &figures, report);
    Ok(())
}

/// Brings the server with the module from one state to the next.
fn enter(state: usize, with: &mut Connection, waiter: &mut Connection) -> Outcome<()> {
    match state {
        1 => held::hold(with, LOCKS),
        2 => {
            let lock = held::name(0);
            let wait = ["RLOCK.ACQUIRE", &lock, "waiter", "30000", "BLOCK", "0"];
            waiter.send(&command(&wait))?;
            while with.info_number("clients", "blocked_clients")? < 1.0 {}
            Ok(())
        }
        _ => Ok(()),
    }
}

fn print(states: &[&str], kinds: &[Kind], figures: &[Vec<Figures>], report: &mut Report) {
    let mut table = Table::new(
        "What other commands lose by the module (pipelined)",
        &COLUMNS,
    );
    for (&state, figures) in states.iter().zip(figures) {
        for (kind, figures) in kinds.iter().zip(figures) {
            let [without, with] = figures.rates();
            let more_cpu = figures.more_cpu();
            let middle = median(&more_cpu);
            let error = error_of_median(&more_cpu);
            let row = vec![
                state.to_owned(),
                kind.name.to_owned(),
                grouped(without),
                grouped(with),
                format!("{:.1}", median(&figures.lost())),
                format!("{middle:.1}"),
                format!("{error:.1}"),
            ];
            table.row(row);
        }
    }
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
}
