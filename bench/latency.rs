//! How long a hand-over takes: from sending RELEASE on one connection to the
//! reply of the waiter on another, and from the close of a connection that held by
//! WATCHDOG. PING beside it, in turns.

use std::time::Instant;

use crate::load::{command, integer, Expect, Outcome, Server};
use crate::options::Options;
use crate::report::{Report, Table};
use crate::stats::quantile;

/// Measures and prints.
pub fn measure(server: &Server, options: &Options, report: &mut Report) -> Outcome<()> {
    let samples = options.count(5_000, 500);
    let mut hand_overs = Vec::with_capacity(samples);
    let mut pings = Vec::with_capacity(samples);

    let ping = command(&["PING"]);
    let acquire = |owner| command(&["RLOCK.ACQUIRE", "handed-over", owner, "30000", "BLOCK", "0"]);
    let release = |owner| command(&["RLOCK.RELEASE", "handed-over", owner]);
    let acquires = [acquire("one"), acquire("other")];
    let releases = [release("one"), release("other")];

    let mut pinger = server.connect()?;
    let mut clients = [server.connect()?, server.connect()?];
    integer(clients[0].exchange(&acquires[0])?)?;
    for sample in 0..samples {
        let (holder, waiter) = (sample % 2, (sample + 1) % 2);
        clients[waiter].send(&acquires[waiter])?;
        // The server reads this after the waiter's command, so when it has
        // answered, the waiter stands in the queue.
        pinger.exchange(&ping)?;

        let start = Instant::now();
        pinger.exchange(&ping)?;
        pings.push(start.elapsed().as_secs_f64() * 1e6);

        let start = Instant::now();
        clients[holder].send(&releases[holder])?;
        integer(clients[waiter].reply()?)?;
        hand_overs.push(start.elapsed().as_secs_f64() * 1e6);

        Expect::Exactly(":0\r\n").check(clients[holder].reply()?)?;
    }

    let mut table = Table::new(
        "Latency of a hand-over",
        &["", "samples", "p50 µs", "p99 µs"],
    );
    let closes = closes(server, options.count(500, 50))?;
    for (name, samples) in [
        ("RELEASE to grant", hand_overs),
        ("close to grant", closes),
        ("PING", pings),
    ] {
        table.row([
            name.to_owned(),
            samples.len().to_string(),
            format!("{:.1}", quantile(&samples, 0.5)),
            format!("{:.1}", quantile(&samples, 0.99)),
        ]);
    }
    table.note(
        "From sending RELEASE to the waiter's reply on another connection, and the round trip",
    );
    table.note("of PING on a third, in turns; all of them blocking reads by one client thread.");
    table.note("Close: from closing a connection that held the lock by WATCHDOG to that reply.");
    report.print(&table);
    Ok(())
}

/// Each holder takes the lock by WATCHDOG, after the one before it has gone.
fn closes(server: &Server, count: usize) -> Outcome<Vec<f64>> {
    let mut samples = Vec::with_capacity(count);
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
        samples.push(start.elapsed().as_secs_f64() * 1e6);
        holder = waiter;
    }
    Ok(samples)
}
