//! Commands that have nothing to do with locks: instructions on a server without the module,
//! on one where very many locks are held, and on that one when somebody waits.

use std::thread;

use super::work::send;
use crate::held;
use crate::load::{command, Connection, Counts, Expect, Outcome, Server};
use crate::options::Options;
use crate::picture::Bars;
use crate::report::{grouped, Report, Table, Target};
use crate::stats::median;
use crate::targets::OTHERS;

/// Locks that are held; without the module as many hashes with a TTL.
const HELD: usize = 1_000_000;

/// Beside no module: DEL while somebody waits. While nobody does it is `targets::OTHERS`.
const MOST_DEL: f64 = 1.10;

/// Keys, each of which is taken once in the longer of two runs.
const TIMES: [usize; 2] = [500, 4_500];

const NOTES: [&str; 6] = [
    "What a command takes, its own work too: the difference between doing it 4,500 and 500 times",
    "to as many keys, on a server each; medians of several runs. Without the module there are as",
    "many hashes with a TTL as locks elsewhere, since a server with more keys works more. Waiting:",
    "another client is a blocked waiter of one of the locks. The targets are for GET, SET, DEL, SET PX",
    "and EXPIRE while nobody waits, and for DEL while somebody does. Locks and hashes are made",
    "before anything is counted.",
];

/// A command, the reply to it, and what must be done to its key before.
struct Kind {
    name: &'static str,
    expect: Expect,
    build: fn(&str) -> Vec<u8>,
}

const OK: Expect = Expect::Exactly("+OK\r\n");
const ONE: Expect = Expect::Exactly(":1\r\n");

const SET: Kind = Kind {
    name: "SET",
    expect: OK,
    build: |key| command(&["SET", key, "0123456789abcdef"]),
};

/// DEL comes last: it leaves nothing.
const KINDS: [Kind; 5] = [
    Kind {
        name: "GET",
        expect: Expect::Bulk,
        build: |key| command(&["GET", key]),
    },
    SET,
    Kind {
        name: "SET PX",
        expect: OK,
        build: |key| command(&["SET", key, "0123456789abcdef", "PX", "600000"]),
    },
    Kind {
        name: "EXPIRE",
        expect: ONE,
        build: |key| command(&["EXPIRE", key, "600"]),
    },
    Kind {
        name: "DEL",
        expect: ONE,
        build: |key| command(&["DEL", key]),
    },
];

/// Counts on both servers, prints and draws.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let held = options.count(HELD, 10_000);
    let mut plain = Server::start_counted(&options.server, None)?;
    let mut loaded = Server::start_counted(&options.server, options.module.as_deref())?;
    thread::scope(|scope| {
        let plain = scope.spawn(|| held::hashes(&mut plain.connect()?, held));
        held::hold(&mut loaded.connect()?, held)?;
        plain.join().map_err(|_| "a thread panicked")?
    })?;
    for server in [&mut plain, &mut loaded] {
        server.count(true)?;
    }
    let rounds = options.count(5, 1);
    let mut all = KINDS.map(|_| [Vec::new(), Vec::new(), Vec::new()]);
    for _ in 0..rounds {
        for (kind, [none, idle, _]) in KINDS.iter().zip(&mut all) {
            none.push(instructions(&mut plain, kind)?);
            idle.push(instructions(&mut loaded, kind)?);
        }
    }
    let mut waiter = loaded.connect()?;
    let wait = ["RLOCK.ACQUIRE", &held::name(0), "waiter", "600000"];
    waiter.send(&command(&[&wait[..], &["BLOCK", "0"]].concat()))?;
    while loaded
        .connect()?
        .info_number("clients", "blocked_clients")?
        < 1.0
    {}
    for _ in 0..rounds {
        for (kind, [_, _, waiting]) in KINDS.iter().zip(&mut all) {
            waiting.push(instructions(&mut loaded, kind)?);
        }
    }
    print(held, &all, report)
}

fn print(held: usize, all: &[[Vec<f64>; 3]], report: &mut Report) -> Outcome<()> {
    let held = grouped(held as f64);
    let names = [
        "no module".to_owned(),
        format!("rlock, {held} locks held"),
        "rlock, and one waits".to_owned(),
    ];
    let [none, idle, waiting] = names.each_ref().map(String::as_str);
    let columns = [
        "instructions",
        none,
        idle,
        "ratio",
        "target",
        "",
        waiting,
        "ratio",
        "target",
        "",
    ];
    let mut table = Table::new("What a command of others takes", &columns);
    let mut bars = Vec::new();
    for (kind, counts) in KINDS.iter().zip(all) {
        let medians = counts.each_ref().map(|counts| median(counts));
        let [none, idle, waiting] = medians;
        let mut row = vec![kind.name.to_owned(), grouped(none)];
        let targets = [Some(OTHERS), (kind.name == "DEL").then_some(MOST_DEL)];
        for (count, state, target) in [
            (idle, &names[1], targets[0]),
            (waiting, &names[2], targets[1]),
        ] {
            let ratio = count / none;
            row.extend([grouped(count), format!("{ratio:.3}")]);
            row.extend(match target {
                Some(most) => {
                    let what = format!("instructions of {} beside no module: {state}", kind.name);
                    report.judge(&what, ratio, Target::AtMost(most))
                }
                None => [String::new(), String::new()],
            });
        }
        table.row(row);
        bars.push(Bars {
            title: format!("instructions of the server for one {}", kind.name),
            bars: names.iter().cloned().zip(medians).collect(),
        });
    }
    NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);
    report.picture("others", &bars)
}

/// Instructions for one command.
fn instructions(server: &mut Server, kind: &Kind) -> Outcome<f64> {
    let mut client = server.connect()?;
    let [less, more] = TIMES;
    run(&mut client, &SET, more)?;
    let mut count = |times: usize| -> Outcome<Counts> {
        server.instructions()?;
        run(&mut client, kind, times)?;
        let count = server.instructions()?;
        // What the command has taken away.
        run(&mut client, &SET, more)?;
        Ok(count)
    };
    let [all, ..] = count(more)?.each(count(less)?, more - less);
    Ok(all)
}

fn run(client: &mut Connection, kind: &Kind, times: usize) -> Outcome<()> {
    let all = (0..times).map(|number| (kind.build)(&format!("other:{number}")));
    send(client, &all.collect::<Vec<_>>(), kind.expect)
}
