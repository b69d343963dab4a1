//! How long a hand-over takes at its shortest, by connections that block: from sending
//! RELEASE on one connection to the reply of the waiter on another, and from the close of a
//! connection that held by WATCHDOG. PING beside it, in turns.

use std::time::Instant;

use hdrhistogram::Histogram;

use super::{micros, times};
use crate::load::{command, integer, Connection, Expect, Outcome, Server};
use crate::options::Options;
use crate::report::{Report, Table, Target};
use crate::stats::median;

const NOTES: [&str; 4] = [
    "Two contend. From sending RELEASE to the waiter's reply on another connection, and the",
    "round trip of PING on a third, sample by sample in turns; all of them blocking reads by one",
    "client thread. The ratios are medians over parts of the run. Close: from closing a",
    "connection that held the lock by WATCHDOG to that reply.",
];

/// Measures and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let server = Server::start(&options.server, options.module.as_deref())?;
    let mut two = Two::start(&server)?;
    let (mut hand_overs, mut pings) = (times()?, times()?);
    let (mut p50s, mut p99s) = (Vec::new(), Vec::new());
    for _ in 0..options.count(20, 2) {
        let (of_hand_over, of_ping) = two.run(options.count(500, 250))?;
        let ratio = |share| micros(&of_hand_over, share) / micros(&of_ping, share);
        p50s.push(ratio(0.5));
        p99s.push(ratio(0.99));
        hand_overs.add(of_hand_over)?;
        pings.add(of_ping)?;
    }
    let columns = [
        "", "samples", "p50 µs", "of PING", "target", "", "p99 µs", "of PING", "target", "",
    ];
    let mut table = Table::new("Latency of a hand-over", &columns);
    let mut row = vec!["RELEASE to grant".to_owned(), hand_overs.len().to_string()];
    for (share, name, ratios, most) in [(0.5, "p50", p50s, 1.1), (0.99, "p99", p99s, 1.5)] {
        let ratio = median(&ratios);
        row.push(format!("{:.1}", micros(&hand_overs, share)));
        row.push(format!("{ratio:.2}"));
        let what = format!("RELEASE to grant / PING, {name}, 2 contenders");
        row.extend(report.judge(&what, ratio, Target::AtMost(most)));
    }
    table.row(row);
    let closes = closes(&server, options.count(500, 50))?;
    for (name, times) in [("close to grant", closes), ("PING", pings)] {
        let none = [String::new(), String::new(), String::new()];
        let mut row = vec![name.to_owned(), times.len().to_string()];
        row.push(format!("{:.1}", micros(&times, 0.5)));
        row.extend(none);
        row.push(format!("{:.1}", micros(&times, 0.99)));
        table.row(row);
    }
    NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);
    Ok(())
}

/// Two that hand a lock to each other, and a third.
struct Two {
    clients: [Connection; 2],
    pinger: Connection,
    acquires: [Vec<u8>; 2],
    releases: [Vec<u8>; 2],
    holder: usize,
}

impl Two {
    fn start(server: &Server) -> Outcome<Self> {
        let acquire =
            |owner| command(&["RLOCK.ACQUIRE", "handed-over", owner, "30000", "BLOCK", "0"]);
        let release = |owner| command(&["RLOCK.RELEASE", "handed-over", owner]);
        let mut two = Two {
            clients: [server.connect()?, server.connect()?],
            pinger: server.connect()?,
            acquires: ["one", "other"].map(acquire),
            releases: ["one", "other"].map(release),
            holder: 0,
        };
        integer(two.clients[0].exchange(&two.acquires[0])?)?;
        Ok(two)
    }

    /// The times of so many hand-overs, and of as many PINGs.
    fn run(&mut self, samples: usize) -> Outcome<(Histogram<u64>, Histogram<u64>)> {
        let (mut hand_overs, mut pings) = (times()?, times()?);
        let ping = command(&["PING"]);
        for _ in 0..samples {
            let (holder, waiter) = (self.holder, 1 - self.holder);
            self.clients[waiter].send(&self.acquires[waiter])?;
            // The server reads this after the waiter's command, so when it has
            // answered, the waiter stands in the queue.
            self.pinger.exchange(&ping)?;

            let start = Instant::now();
            self.pinger.exchange(&ping)?;
            pings.saturating_record(start.elapsed().as_nanos() as u64);

            let start = Instant::now();
            self.clients[holder].send(&self.releases[holder])?;
            integer(self.clients[waiter].reply()?)?;
            hand_overs.saturating_record(start.elapsed().as_nanos() as u64);

            Expect::Exactly(":0\r\n").check(self.clients[holder].reply()?)?;
            self.holder = waiter;
        }
        Ok((hand_overs, pings))
    }
}

/// Each holder takes the lock by WATCHDOG, after the one before it has gone.
fn closes(server: &Server, count: usize) -> Outcome<Histogram<u64>> {
    let mut samples = times()?;
    let mut pinger = server.connect()?;
    let acquire = |number: usize| {
        let owner = format!("holder:{number}");
        let wait = ["RLOCK.ACQUIRE", "watched", &owner, "30000"];
        command(&[&wait[..], &["WATCHDOG", "BLOCK", "0"]].concat())
    };
    let mut holder = server.connect()?;
    integer(holder.exchange(&acquire(0))?)?;
    for number in 1..=count {
        let mut waiter = server.connect()?;
        waiter.send(&acquire(number))?;
        pinger.call(&["PING"])?;
        let start = Instant::now();
        drop(holder);
        integer(waiter.reply()?)?;
        samples.saturating_record(start.elapsed().as_nanos() as u64);
        holder = waiter;
    }
    Ok(samples)
}
