//! Pairs of rlock beside those of the least module, with more and fewer of them in flight: a
//! server that is asked more often does more of them at a time, and what is put off until later
//! comes more often, too.

use std::time::Duration;

use super::{KEYS, LEASE, OWNER};
use crate::load::{command, Connection, Expect, Load, Outcome, Server, Setup};
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};
use crate::stats::{median, ratios};
use crate::targets::{NO_LEAST, PAIRS_OF_LEAST};

/// Commands in flight, and whether the server writes an AOF.
const ROWS: [(usize, bool); 6] = [
    (1, false),
    (2, false),
    (8, false),
    (32, false),
    (256, false),
    (256, true),
];

const NOTES: [&str; 6] = [
    "The least module (bench/least): a hash with an end, and a look who releases; nothing is",
    "remembered. Where there is no AOF it has each write counted, as rlock does; with one it",
    "sends the same commands as rlock. Each has servers of its own, which are started anew in",
    "between, and all take turns; rates, times of the server's processor (INFO cpu) and ratios",
    "are medians over the turns. In flight are commands, of which a pair has two. Without an AOF",
    "there are targets.",
];

/// What a row came to, for rlock and for the least module.
#[derive(Default)]
struct Figures {
    rates: [Vec<f64>; 2],
    micros: [Vec<f64>; 2],
}

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let modules = match (&options.module, &options.least) {
        (Some(module), Some(least)) => [module, least],
        (None, _) => return Ok(()),
        (_, None) => {
            report.say(NO_LEAST);
            return Ok(());
        }
    };
    let mut figures: [Figures; ROWS.len()] = Default::default();
    for _ in 0..options.count(3, 1) {
        let start = |which: usize, recorded: bool| {
            let words: &[&str] = match (which, recorded) {
                (1, false) => &["verbatim"],
                _ => &[],
            };
            let setup = Setup {
                module: Some(modules[which]),
                words,
                recorded,
                ..Setup::default()
            };
            Server::start_as(&options.server, setup)
        };
        let servers = [
            [start(0, false)?, start(1, false)?],
            [start(0, true)?, start(1, true)?],
        ];
        for turn in 0..options.count(6, 2) {
            for (figures, (depth, recorded)) in figures.iter_mut().zip(ROWS) {
                // Who comes first changes.
                for which in [turn % 2, (turn + 1) % 2] {
                    let server = &servers[usize::from(recorded)][which];
                    let time = options.millis(250, 100);
                    let [rate, micros] = run(&mut server.connect()?, which, depth, time)?;
                    figures.rates[which].push(rate);
                    figures.micros[which].push(micros);
                }
            }
        }
    }
    print(&figures, report);
    Ok(())
}

/// Pairs a second, and what the server took for each.
fn run(
    connection: &mut Connection,
    which: usize,
    depth: usize,
    time: Duration,
) -> Outcome<[f64; 2]> {
    let [acquire, release] = [
        ["RLOCK.ACQUIRE", "RLOCK.RELEASE"],
        ["LEAST.ACQUIRE", "LEAST.RELEASE"],
    ][which];
    let pair = |index: usize| {
        let key = format!("lock:{index}");
        [
            command(&[acquire, &key, OWNER, LEASE]),
            command(&[release, &key, OWNER]),
        ]
    };
    let commands: Vec<Vec<u8>> = (0..KEYS).flat_map(pair).collect();
    let expect = [Expect::Integer, Expect::Exactly(":0\r\n")];
    let mut load = Load::new(depth, &commands, &expect);
    load.run(connection, time / 8)?;
    let before = connection.server_cpu()?;
    let rate = load.run(connection, time)?;
    let used = connection.server_cpu()? - before;
    let pairs = rate.commands as f64 / 2.0;
    Ok([pairs / rate.time.as_secs_f64(), used * 1e6 / pairs])
}

fn print(figures: &[Figures; ROWS.len()], report: &mut Report) {
    let mut table = Table::new(
        "Acquire + release of a free lock, beside the least module",
        &[
            "in flight",
            "rlock pairs/s",
            "least pairs/s",
            "rlock is",
            "target",
            "",
            "server µs/pair",
            "least's µs",
            "ratio",
        ],
    );
    for (figures, (depth, recorded)) in figures.iter().zip(ROWS) {
        let [ours, least] = &figures.rates;
        let ratio = median(&ratios(ours, least));
        let name = match recorded {
            false => format!("{depth}"),
            true => format!("{depth}, AOF on"),
        };
        let mut row = vec![
            name,
            grouped(median(ours)),
            grouped(median(least)),
            format!("{ratio:.2} x"),
        ];
        row.extend(match recorded {
            true => [String::new(), String::new()],
            false => {
                let what = format!("pairs/s, rlock / the least module, {depth} in flight");
                report.judge(&what, ratio, Target::AtLeast(PAIRS_OF_LEAST))
            }
        });
        let [ours, least] = &figures.micros;
        row.extend([ours, least].map(|micros| format!("{:.2}", median(micros))));
        row.push(format!("{:.2}", median(&ratios(ours, least))));
        table.row(row);
    }
    NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);
}
