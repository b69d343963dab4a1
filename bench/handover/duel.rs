//! Two ways of waiting side by side, in turns, each with a server and a crowd of its own.

use std::time::{Duration, Instant};

use super::{Contest, Way};
use crate::load::{Connection, Outcome, Server};
use crate::options::Options;

/// Hand-overs per second, and microseconds of the server's processor for each.
#[derive(Default)]
pub struct Side {
    pub rates: Vec<f64>,
    pub costs: Vec<f64>,
}

/// What both ways came to, turn by turn.
pub struct Duel {
    pub sides: [Side; 2],
    pub violations: usize,
}

impl Duel {
    /// Since two processes of one program differ by a little, servers are started anew in
    /// between.
    pub fn between(ways: [Way; 2], options: &Options, crowd: usize) -> Outcome<Self> {
        let mut duel = Duel {
            sides: Default::default(),
            violations: 0,
        };
        for _ in 0..options.count(2, 1) {
            duel.contend(ways, options, crowd)?;
        }
        Ok(duel)
    }

    /// Some turns on two fresh servers.
    fn contend(&mut self, ways: [Way; 2], options: &Options, crowd: usize) -> Outcome<()> {
        let [first, second] = ways.map(|way| Crowd::start(options, crowd, way));
        let mut crowds = [first?, second?];
        // Short turns: what else the machine does then meets both alike.
        let time = options.millis(150, 100);
        for turn in 0..options.count(12, 3) {
            // Who comes first changes, too.
            for which in [turn % 2, (turn + 1) % 2] {
                crowds[which].run(time, &mut self.sides[which])?;
            }
        }
        for crowd in crowds {
            self.violations += crowd.contest.end()?;
        }
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
    /// Starts both, and lets the crowd warm up.
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

    /// Hands the lock over for a while.
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
