//! Many connections contend for one lock: how often it changes hands, beside
//! the round trips of PING that one connection makes on the same server. A
//! hand-over cannot be faster than a round trip, since the holder has to hear
//! of its grant before it can release.

mod contest;
mod duel;

use std::time::{Duration, Instant};

use crate::load::{command, Connection, Outcome, Poller, Server};
use crate::options::Options;
use crate::report::{grouped, Mark, Report, Table};
use crate::stats::{median, ratios};

pub use contest::{Contest, Way};
pub use duel::Duel;

/// Measures with a hundred and with a thousand contenders.
pub fn measure(server: &Server, options: &Options, report: &mut Report) -> Outcome<()> {
    let mut table = Table::new(
        "Hand-over of one lock under contention",
        &[
            "contenders",
            "hand-overs/s",
            "PING/s",
            "ratio",
            "mark",
            "",
            "double grants",
            "mark",
            "",
        ],
    );
    for contenders in [100, 1_000] {
        let figures = contend(server, options, contenders)?;
        let ratio = median(&ratios(&figures.hand_overs, &figures.pings));
        let violations = figures.violations as f64;
        let what = format!("hand-overs / PING, {contenders} contenders");
        let speed = report.judge(&what, ratio, Mark::AtLeast(0.85));
        let what = format!("double grants, {contenders} contenders");
        let safety = report.judge(&what, violations, Mark::AtMost(0.0));
        let mut row = vec![
            grouped(contenders as f64),
            grouped(median(&figures.hand_overs)),
            grouped(median(&figures.pings)),
            format!("{ratio:.2}"),
        ];
        row.extend(speed);
        row.push(grouped(violations));
        row.extend(safety);
        table.row(row);
    }
    table
        .note("A contender sends its RELEASE and its next ACQUIRE in one write; one client thread");
    table.note(
        "serves them all. PING goes through the same loop, in turns with the hand-overs, while",
    );
    table.note(
        "the contenders are connected. A double grant is a second grant seen while a holder has",
    );
    table.note("not sent its release, or a token that does not rise.");
    report.print(&table);
    Ok(())
}

/// What one size of crowd came to, round by round.
struct Figures {
    hand_overs: Vec<f64>,
    pings: Vec<f64>,
    violations: usize,
}

fn contend(server: &Server, options: &Options, contenders: usize) -> Outcome<Figures> {
    let mut pinger = Pinger::new(server)?;
    let mut contest = Contest::start(server, contenders, Way::Block)?;
    contest.hold_each(options.count(200, 50), Duration::from_millis(1))?;
    let (mut hand_overs, mut pings) = (Vec::new(), Vec::new());
    for _ in 0..options.count(6, 2) {
        hand_overs.push(contest.run(options.millis(500, 200))?);
        pings.push(pinger.run(options.millis(300, 100))?);
    }
    Ok(Figures {
        hand_overs,
        pings,
        violations: contest.end()?,
    })
}

/// One connection that does nothing but PING.
struct Pinger {
    connection: Connection,
    poller: Poller,
}

impl Pinger {
    fn new(server: &Server) -> Outcome<Self> {
        let connection = server.connect_small()?;
        let mut poller = Poller::new()?;
        poller.watch(&connection, 0)?;
        Ok(Pinger { connection, poller })
    }

    /// Round trips per second.
    fn run(&mut self, time: Duration) -> Outcome<f64> {
        let ping = command(&["PING"]);
        let mut ready = Vec::new();
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < time {
            self.connection.send(&ping)?;
            while self.connection.received()?.is_none() {
                self.poller.wait(Duration::from_secs(10), &mut ready)?;
                self.connection.receive()?;
            }
            count += 1;
        }
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    }
}
