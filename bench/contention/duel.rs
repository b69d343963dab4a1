//! Ways of waiting side by side, in turns, each with a server and a crowd of its own,
//! and with PING on the same server.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::contest::{Contest, Way};
use super::pings::Pinger;
use super::{evenness, times};
use crate::load::{Connection, Outcome, Server};
use crate::options::Options;

/// How often a second, and microseconds of the server's processor for each, turn by turn;
/// and how long each took.
pub struct Figures {
    pub rates: Vec<f64>,
    pub costs: Vec<f64>,
    /// Of these those in the kernel.
    pub kernel: Vec<f64>,
    pub times: Histogram<u64>,
}

impl Figures {
    fn new() -> Outcome<Self> {
        Ok(Figures {
            rates: Vec::new(),
            costs: Vec::new(),
            kernel: Vec::new(),
            times: times()?,
        })
    }
}

/// What one way came to.
pub struct Side {
    pub hand_overs: Figures,
    pub pings: Figures,
    /// How evenly the grants were spread, where that was worst.
    pub evenness: f64,
    pub violations: usize,
}

/// What all ways came to, in their order.
pub struct Duel {
    pub sides: Vec<Side>,
}

impl Duel {
    /// Since two processes of one program differ by a little, servers are started anew in
    /// between.
    pub fn between(ways: &[Way], options: &Options, crowd: usize) -> Outcome<Self> {
        let sides: Outcome<Vec<Side>> = ways.iter().map(|_| Side::new()).collect();
        let mut duel = Duel { sides: sides? };
        for _ in 0..options.count(2, 1) {
            duel.contend(ways, options, crowd)?;
        }
        Ok(duel)
    }

    /// How often any violated mutual exclusion.
    pub fn violations(&self) -> usize {
        self.sides.iter().map(|side| side.violations).sum()
    }

    /// Some turns on fresh servers.
    fn contend(&mut self, ways: &[Way], options: &Options, crowd: usize) -> Outcome<()> {
        let start = |way: &Way| Crowd::start(options, crowd, *way);
        let mut crowds: Vec<Crowd> = ways.iter().map(start).collect::<Outcome<_>>()?;
        // Short turns: what else the machine does then meets all alike.
        let time = options.millis(150, 80);
        for turn in 0..options.count(8, 2) {
            // Who comes first changes, too.
            for place in 0..crowds.len() {
                let which = (turn + place) % crowds.len();
                crowds[which].run(time, &mut self.sides[which])?;
            }
        }
        for (crowd, side) in crowds.into_iter().zip(&mut self.sides) {
            crowd.end(side)?;
        }
        Ok(())
    }
}

impl Side {
    fn new() -> Outcome<Self> {
        Ok(Side {
            hand_overs: Figures::new()?,
            pings: Figures::new()?,
            evenness: 1.0,
            violations: 0,
        })
    }
}

/// A contest, its server, and one that asks that server for something else.
struct Crowd {
    contest: Contest,
    pinger: Pinger,
    control: Connection,
    _server: Server,
}

impl Crowd {
    /// Starts them, and lets them warm up.
    fn start(options: &Options, count: usize, way: Way) -> Outcome<Self> {
        let server = way.server(options)?;
        let mut contest = Contest::start(&server, count, way)?;
        contest.hold_each(options.count(50, 20), Duration::from_millis(1))?;
        contest.run(options.millis(200, 50))?;
        contest.forget();
        Ok(Crowd {
            contest,
            pinger: Pinger::new(&server)?,
            control: server.connect()?,
            _server: server,
        })
    }

    /// Hands the lock over for a while, and asks PING for a while.
    fn run(&mut self, time: Duration, side: &mut Side) -> Outcome<()> {
        measured(&mut self.control, &mut side.hand_overs, || {
            self.contest.run(time)
        })?;
        measured(&mut self.control, &mut side.pings, || self.pinger.run(time))
    }

    fn end(mut self, side: &mut Side) -> Outcome<()> {
        self.contest.finish_round()?;
        side.hand_overs.times.add(&self.contest.times)?;
        side.pings.times.add(&self.pinger.times)?;
        side.evenness = side.evenness.min(evenness(&self.contest.grants_of));
        side.violations += self.contest.end()?;
        Ok(())
    }
}

/// Notes the rate that `run` gives, and what the server took for each.
fn measured(
    control: &mut Connection,
    figures: &mut Figures,
    run: impl FnOnce() -> Outcome<f64>,
) -> Outcome<()> {
    let before = control.server_cpu_parts()?;
    let start = Instant::now();
    let rate = run()?;
    let count = rate * start.elapsed().as_secs_f64();
    let after = control.server_cpu_parts()?;
    let [user, kernel] = [0, 1].map(|part| (after[part] - before[part]) * 1e6 / count);
    figures.rates.push(rate);
    figures.costs.push(user + kernel);
    figures.kernel.push(kernel);
    Ok(())
}
