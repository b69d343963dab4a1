//! How cost grows: the server's time for a pair, a hand-over and the end of a lease, beside
//! more and more locks that are held, and more and more requests that wait.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::contention::{Contest, Way};
use crate::held;
use crate::load::{command, integer, Connection, Expect, Load, Outcome, Server, Session};
use crate::options::Options;
use crate::picture::Lines;
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

/// What is measured, as the pictures call it.
const WORK: [&str; 4] = [
    "a pair, pipelined",
    "a hand-over between two",
    "the end of a lease",
    "a hand-over among those who wait",
];

const NOTES: [&str; 5] = [
    "Processor time of the server for one, in microseconds: a pair is ACQUIRE and RELEASE of a free",
    "lock, 256 commands in flight; a hand-over is RELEASE and the next ACQUIRE, in one write, and",
    "their two replies; the end of a lease is measured while the server has nothing else to do,",
    "less what it takes to do nothing. Those who wait do so by QUEUE, on one connection, for one",
    "lock. Each row has a server of its own.",
];

/// Measures all sizes, prints and draws.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let most = options.count(usize::MAX, 1_000);
    for (besides, sizes, what, file) in [
        (Besides::Held, &HELD[..], "locks held", "growth-held"),
        (
            Besides::Waiting,
            &WAITING[..],
            "requests waiting",
            "growth-waiting",
        ),
    ] {
        let mut columns = vec![what];
        columns.extend(WORK);
        let mut table = Table::new(format!("Server time beside many {what}"), &columns);
        let mut series = WORK.map(|name| (name.to_owned(), Vec::new()));
        for &size in sizes.iter().filter(|size| **size <= most) {
            let costs = costs(options, besides, size)?;
            let mut row = vec![grouped(size as f64)];
            for (cost, (_, points)) in costs.iter().zip(&mut series) {
                row.push(format!("{cost:.2}"));
                points.push((size as f64, *cost));
            }
            table.row(row);
        }
        NOTES.iter().for_each(|note| table.note(*note));
        report.print(&table);
        let lines = Lines {
            title: format!("server time beside many {what}"),
            x: what,
            y: "microseconds",
            series: series
                .into_iter()
                .filter(|(_, points)| !points.is_empty())
                .collect(),
        };
        report.picture(file, &[lines])?;
    }
    Ok(())
}

/// The costs of each kind of work beside so many, in us.
fn costs(options: &Options, besides: Besides, size: usize) -> Outcome<Vec<f64>> {
    let server = Server::start(&options.server, options.module.as_deref())?;
    let mut control = server.connect()?;
    let mut session = Session::on(server.connect()?)?;
    match besides {
        Besides::Held => held::hold(&mut control, size)?,
        Besides::Waiting => {
            held::hold(&mut control, 1)?;
            let wait = |number: usize| {
                let owner = sessions::owner(number);
                session.wait(&held::name(0), &owner, ["600000", "0"], number)
            };
            let waits: Vec<Vec<u8>> = (0..size).map(wait).collect();
            session.queue(&waits)?;
        }
    }
    let mut costs = vec![
        pair(&server, &mut control, options)?,
        hand_over(&server, &mut control, 2, Way::Block, options)?,
        end_of_lease(&mut control, options)?,
    ];
    if matches!(besides, Besides::Waiting) {
        drop(session);
        let server = Server::start(&options.server, options.module.as_deref())?;
        let mut control = server.connect()?;
        costs.push(hand_over(
            &server,
            &mut control,
            size + 1,
            Way::Queue,
            options,
        )?);
    }
    Ok(costs)
}

fn pair(server: &Server, control: &mut Connection, options: &Options) -> Outcome<f64> {
    let commands: Vec<Vec<u8>> = (0..1_000)
        .flat_map(|number| {
            let key = format!("free:{number}");
            [
                command(&["RLOCK.ACQUIRE", &key, "owner", "600000"]),
                command(&["RLOCK.RELEASE", &key, "owner"]),
            ]
        })
        .collect();
    let mut load = Load::new(options.depth, &commands, &[Expect::Integer]);
    let mut client = server.connect()?;
    load.run(&mut client, options.millis(300, 50))?;
    turns(options, || {
        let before = control.server_cpu()?;
        let rate = load.run(&mut client, options.millis(300, 100))?;
        let used = control.server_cpu()? - before;
        Ok(used / (rate.commands as f64 / 2.0))
    })
}

fn hand_over(
    server: &Server,
    control: &mut Connection,
    crowd: usize,
    way: Way,
    options: &Options,
) -> Outcome<f64> {
    let mut contest = Contest::start(server, crowd, way)?;
    contest.run(options.millis(200, 50))?;
    let cost = turns(options, || {
        let before = control.server_cpu()?;
        let start = Instant::now();
        let rate = contest.run(options.millis(300, 100))?;
        let count = rate * start.elapsed().as_secs_f64();
        Ok((control.server_cpu()? - before) / count)
    })?;
    contest.end()?;
    Ok(cost)
}

/// So many end within a second, some time after the last of them was taken.
fn end_of_lease(control: &mut Connection, options: &Options) -> Outcome<f64> {
    let count = options.count(20_000, 2_000);
    let others = integer(control.call(&["DBSIZE"])?)?;
    let acquire = |number: usize| {
        let lease = (2_000 + number * 1_000 / count).to_string();
        command(&[
            "RLOCK.ACQUIRE",
            &format!("ending:{number}"),
            "owner",
            &lease,
        ])
    };
    let commands: Vec<Vec<u8>> = (0..count).map(acquire).collect();
    let mut load = Load::new(64, &commands, &[Expect::Integer]);
    let nothing = meanwhile(control)?;
    load.run_once(control)?;
    let ending = meanwhile(control)?;
    if integer(control.call(&["DBSIZE"])?)? != others {
        return Err("the leases did not end".into());
    }
    Ok((ending - nothing).max(0.0) * 1e6 / count as f64)
}

/// Seconds that the server works while nobody asks it for anything.
fn meanwhile(control: &mut Connection) -> Outcome<f64> {
    let before = control.server_cpu()?;
    sleep(Duration::from_secs(4));
    Ok(control.server_cpu()? - before)
}

/// The median of some turns, in us.
fn turns(options: &Options, mut turn: impl FnMut() -> Outcome<f64>) -> Outcome<f64> {
    let seconds: Outcome<Vec<f64>> = (0..options.count(5, 2)).map(|_| turn()).collect();
    Ok(median(&seconds?) * 1e6)
}
