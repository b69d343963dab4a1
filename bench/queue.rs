//! Hand-over to those who wait by QUEUE, all on one connection, beside the same contest
//! by BLOCK on as many connections.
//!
//! The two differ only in the way of waiting: the same owners, lease and lock, RELEASE
//! and the next ACQUIRE in one write, by the connection that was told of the grant, as a
//! program would do it. So by BLOCK the reply to RELEASE and the grant come on two
//! connections, by QUEUE on one: that is a part of what a session saves. Each way has a
//! server of its own, for who has sessions does not have the connections besides; since
//! two processes of one program differ by a little, they are started anew in between.

use std::time::{Duration, Instant};

use crate::handover::{Contest, Way};
use crate::load::{self, Connection, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Mark, Report, Table};
use crate::stats::{median, ratios};

/// How many contend.
const CROWDS: [usize; 4] = [2, 100, 1_000, 10_000];

/// Files that a server or this process has open besides.
const OTHER_FILES: usize = 100;

const NOTES: [&str; 5] = [
    "The contest of the hand-over above, by BLOCK on a connection for each contender, and by",
    "QUEUE on one RESP3 connection for all, which sends the RELEASEs too; in turns, each on a",
    "server of its own. The ratio is the median over the turns. Beside the rates stands what a",
    "hand-over takes of the server's processor, by QUEUE and by BLOCK, which other work on the",
    "machine disturbs less.",
];

/// Measures all sizes and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let mut table = Table::new(
        "Hand-over by QUEUE on one connection, by BLOCK on as many",
        &[
            "contenders",
            "QUEUE/s",
            "BLOCK/s",
            "ratio",
            "mark",
            "",
            "us by QUEUE",
            "by BLOCK",
            "double grants",
            "mark",
            "",
        ],
    );
    for crowd in CROWDS {
        if !load::may_open(crowd + OTHER_FILES)? {
            table.note(format!(
                "{crowd} connections are more than may be open (ulimit -n)."
            ));
            continue;
        }
        let mut figures = Figures::default();
        for _ in 0..options.count(2, 1) {
            figures.contend(options, crowd)?;
        }
        let ratio = median(&ratios(&figures.queue.rates, &figures.block.rates));
        let what = format!("hand-overs by QUEUE / BLOCK, {crowd} contenders");
        let speed = report.judge(&what, ratio, Mark::AtLeast(0.95));
        let what = format!("double grants by QUEUE or BLOCK, {crowd} contenders");
        let violations = figures.violations as f64;
        let safety = report.judge(&what, violations, Mark::AtMost(0.0));
        let mut row = vec![
            grouped(crowd as f64),
            grouped(median(&figures.queue.rates)),
            grouped(median(&figures.block.rates)),
            format!("{ratio:.2}"),
        ];
        row.extend(speed);
        row.push(format!("{:.1}", median(&figures.queue.costs)));
        row.push(format!("{:.1}", median(&figures.block.costs)));
        row.push(grouped(violations));
        row.extend(safety);
        table.row(row);
    }
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}

/// What both ways came to, turn by turn.
#[derive(Default)]
struct Figures {
    queue: Side,
    block: Side,
    violations: usize,
}

/// Hand-overs per second, and microseconds of the server's processor for each.
#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    costs: Vec<f64>,
}

impl Figures {
    /// Some turns on two fresh servers.
    fn contend(&mut self, options: &Options, crowd: usize) -> Outcome<()> {
        let mut queue = Crowd::start(options, crowd, Way::Queue)?;
        let mut block = Crowd::start(options, crowd, Way::Block)?;
        // Short turns: what else the machine does then meets both alike.
        let time = options.millis(150, 100);
        for turn in 0..options.count(12, 3) {
            // Who comes first changes, too.
            if turn % 2 == 0 {
                queue.run(time, &mut self.queue)?;
                block.run(time, &mut self.block)?;
            } else {
                block.run(time, &mut self.block)?;
                queue.run(time, &mut self.queue)?;
            }
        }
        self.violations += queue.contest.end()? + block.contest.end()?;
        Ok(())
    }
}

/// A contest, and its server.
struct Crowd {
    contest: Contest,
    control: Connection,
    _server: Server,
}

impl Crowd {
    fn start(options: &Options, count: usize, way: Way) -> Outcome<Self> {
        let server = Server::start(&options.server, options.module.as_deref())?;
        let mut contest = Contest::start(&server, count, way)?;
        contest.hold_each(options.count(50, 20), Duration::from_millis(1))?;
        contest.run(options.millis(200, 50))?;
        Ok(Crowd {
            contest,
            control: server.connect()?,
            _server: server,
        })
    }

    fn run(&mut self, time: Duration, side: &mut Side) -> Outcome<()> {
        let before = self.control.server_cpu()?;
        let start = Instant::now();
        let rate = self.contest.run(time)?;
        let hand_overs = rate * start.elapsed().as_secs_f64();
        let used = self.control.server_cpu()? - before;
        side.rates.push(rate);
        side.costs.push(used * 1e6 / hand_overs);
        Ok(())
    }
}
