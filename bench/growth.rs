//! How cost grows: the server's time for a pair, a hand-over and the end of a lease, beside
//! more and more locks that are held, and more and more requests that wait.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::contention::{Contest, Way};
use crate::held;
use crate::load::{command, integer, Connection, Expect, Load, Outcome, Server, Session};
use crate::options::Options;
use crate::picture::{self, Lines, Series};
use crate::report::{grouped, Report, Table};
use crate::sessions;
use crate::stats::median;

/// What there is besides.
#[derive(Clone, Copy)]
enum Besides {
    Held,
    Waiting,
}

const HELD: [usize; 3] = [1, 1_000, 1_000_000];
const WAITING: [usize; 4] = [1, 100, 10_000, 100_000];

/// For so long nothing is done, and for so long leases end.
const IDLE: Duration = Duration::from_secs(1);
const ENDING: Duration = Duration::from_secs(3);

/// What is measured, as the pictures call it.
const WORK: [&str; 5] = [
    "a pair, pipelined",
    "SET NX PX + DEL, pipelined",
    "a hand-over between two",
    "the end of a lease",
    "a hand-over among all who wait",
];

const NOTES: [&str; 8] = [
    "Processor time of the server for one (INFO cpu), in microseconds. A pair is ACQUIRE and",
    "RELEASE of a free lock, many commands in flight; SET and DEL of a free key on the same server",
    "show what more keys cost by themselves. A hand-over is RELEASE and the next",
    "ACQUIRE, in one write, and their two replies: between two blocked waiters, beside all others;",
    "or, where it says so, among as many queued ones as the row says. Ends of leases are measured",
    "while the server has nothing else to do, less its cost of doing nothing. Those who wait",
    "are queued by one connection, for one lock. Each row has servers of its own; medians",
    "over rounds in which the rows take turns.",
];

/// Measures all sizes, prints and draws.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let held = (Besides::Held, &HELD[..], "locks held", "growth-held");
    let waiting = (
        Besides::Waiting,
        &WAITING[..],
        "requests waiting",
        "growth-waiting",
    );
    for (besides, sizes, what, file) in [held, waiting] {
        let mut rows = Vec::new();
        let most = options.count(usize::MAX, 1_000);
        for &size in sizes.iter().filter(|size| **size <= most) {
            rows.push(Row::start(options, besides, size)?);
        }
        for _ in 0..options.count(3, 1) {
            for row in &mut rows {
                row.turn(options)?;
            }
        }
        let all = rows.iter().any(|row| row.among.is_some());
        let mut columns = vec![what];
        columns.extend(&WORK[..if all { 5 } else { 4 }]);
        let title = format!("Server time beside more and more {what}");
        let mut table = Table::new(&title, &columns);
        let mut series = Series::new();
        for row in rows {
            let mut cells = vec![grouped(row.size as f64)];
            for (name, costs) in WORK.iter().zip(&row.costs) {
                if costs.is_empty() {
                    continue;
                }
                let cost = median(costs);
                cells.push(format!("{cost:.2}"));
                picture::add(&mut series, name, (row.size as f64, cost));
            }
            table.row(cells);
            row.end()?;
        }
        NOTES.iter().for_each(|note| table.note(*note));
        report.print(&table);
        let lines = Lines {
            title,
            x: what,
            y: "microseconds of the server",
            series,
        };
        report.picture(file, &[lines])?;
    }
    Ok(())
}

/// A size, with servers of its own, and what each kind of work came to there, in us.
struct Row {
    size: usize,
    control: Connection,
    client: Connection,
    pairs: [Load; 2],
    ends: Load,
    two: Contest,
    /// A contest of all who wait.
    among: Option<(Contest, Connection, Server)>,
    costs: [Vec<f64>; 5],
    _waiting: Option<Session>,
    _server: Server,
}

impl Row {
    fn start(options: &Options, besides: Besides, size: usize) -> Outcome<Self> {
        let start = || Server::start(&options.server, options.module.as_deref());
        let server = start()?;
        let mut control = server.connect()?;
        let (mut waiting, mut among) = (None, None);
        match besides {
            Besides::Held => held::hold(&mut control, size)?,
            Besides::Waiting => {
                held::hold(&mut control, 1)?;
                let mut session = Session::on(server.connect()?)?;
                let wait = |number: usize| {
                    let owner = sessions::owner(number);
                    session.wait(&held::name(0), &owner, ["600000", "0"], number)
                };
                let waits: Vec<Vec<u8>> = (0..size).map(wait).collect();
                session.queue(&waits)?;
                waiting = Some(session);
                let server = start()?;
                let contest = Contest::start(&server, size + 1, Way::Queue)?;
                among = Some((contest, server.connect()?, server));
            }
        }
        // After those who wait, whom it would count among its own.
        let two = Contest::start_beside(&server, 2, Way::Block, waiting.iter().len() * size)?;
        Ok(Row {
            size,
            control,
            client: server.connect()?,
            pairs: [
                Load::new(options.depth, &pairs(pair), &[Expect::Integer]),
                Load::new(options.depth, &pairs(set_and_del), &SET_AND_DEL),
            ],
            ends: ends(options),
            two,
            among,
            costs: Default::default(),
            _waiting: waiting,
            _server: server,
        })
    }

    /// All kinds of work in turn.
    fn turn(&mut self, options: &Options) -> Outcome<()> {
        let [warm_up, time] = [options.millis(100, 30), options.millis(500, 100)];
        for (pairs, costs) in self.pairs.iter_mut().zip(&mut self.costs) {
            pairs.run(&mut self.client, warm_up)?;
            let before = self.control.server_cpu()?;
            let rate = pairs.run(&mut self.client, time)?;
            let used = self.control.server_cpu()? - before;
            costs.push(used * 1e6 / (rate.commands as f64 / 2.0));
        }

        let cost = hand_over(&mut self.two, &mut self.control, [warm_up, time])?;
        self.costs[2].push(cost);
        let cost = self.end_of_lease(options)?;
        self.costs[3].push(cost);
        if let Some((contest, control, _)) = &mut self.among {
            self.costs[4].push(hand_over(contest, control, [warm_up, time])?);
        }
        Ok(())
    }

    /// They end within half a second, some time after the last of them was taken.
    fn end_of_lease(&mut self, options: &Options) -> Outcome<f64> {
        let control = &mut self.control;
        let others = integer(control.call(&["DBSIZE"])?)?;
        let nothing = meanwhile(control, IDLE)?;
        self.ends.run_once(&mut self.client)?;
        let ending = meanwhile(control, ENDING)?;
        if integer(control.call(&["DBSIZE"])?)? != others {
            return Err("the leases did not end".into());
        }
        let nothing = nothing * ENDING.as_secs_f64() / IDLE.as_secs_f64();
        Ok((ending - nothing) * 1e6 / ending_leases(options) as f64)
    }

    fn end(self) -> Outcome<()> {
        let mut violations = self.two.end()?;
        if let Some((contest, _, _)) = self.among {
            violations += contest.end()?;
        }
        match violations {
            0 => Ok(()),
            count => Err(format!("{count} double grants").into()),
        }
    }
}

/// Of a thousand free names.
fn pairs(pair: fn(&str) -> [Vec<u8>; 2]) -> Vec<Vec<u8>> {
    let names = (0..1_000).map(|number| format!("free:{number}"));
    names.flat_map(|name| pair(&name)).collect()
}

fn pair(key: &str) -> [Vec<u8>; 2] {
    [
        command(&["RLOCK.ACQUIRE", key, "owner", "600000"]),
        command(&["RLOCK.RELEASE", key, "owner"]),
    ]
}

const SET_AND_DEL: [Expect; 2] = [Expect::Exactly("+OK\r\n"), Expect::Exactly(":1\r\n")];

/// What the server itself does the longer for having more keys is in it, too.
fn set_and_del(key: &str) -> [Vec<u8>; 2] {
    [
        command(&["SET", key, "owner", "NX", "PX", "600000"]),
        command(&["DEL", key]),
    ]
}

/// Acquisitions of locks whose leases soon end.
fn ends(options: &Options) -> Load {
    let count = ending_leases(options);
    let acquire = |number: usize| {
        let key = format!("ending:{number}");
        let lease = (2_000 + number * 500 / count).to_string();
        command(&["RLOCK.ACQUIRE", &key, "owner", &lease])
    };
    let commands: Vec<Vec<u8>> = (0..count).map(acquire).collect();
    Load::new(64, &commands, &[Expect::Integer])
}

fn ending_leases(options: &Options) -> usize {
    options.count(20_000, 2_000)
}

/// The server's time for a hand-over, in us.
fn hand_over(
    contest: &mut Contest,
    control: &mut Connection,
    [warm_up, time]: [Duration; 2],
) -> Outcome<f64> {
    contest.run(warm_up)?;
    let before = control.server_cpu()?;
    let start = Instant::now();
    let rate = contest.run(time)?;
    let count = rate * start.elapsed().as_secs_f64();
    Ok((control.server_cpu()? - before) * 1e6 / count)
}

/// Seconds that the server works while nobody asks it for anything.
fn meanwhile(control: &mut Connection, time: Duration) -> Outcome<f64> {
    let before = control.server_cpu()?;
    sleep(time);
    Ok(control.server_cpu()? - before)
}
