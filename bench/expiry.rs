//! How late a lock changes hands whose lease has run out while its holder did
//! nothing: with few locks held, and with very many.

use std::thread;
use std::time::{Duration, SystemTime};

use crate::held;
use crate::load::{integer, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Mark, Report, Table};
use crate::stats::quantile;

/// Locks that run out at the same time, more or less.
const LANES: usize = 4;

/// Measures with few and with many locks held, and prints.
pub fn measure(server: &Server, options: &Options, report: &mut Report) -> Outcome<()> {
    let mut table = Table::new(
        "Lateness of expiry",
        &[
            "locks held",
            "samples",
            "p50 ms",
            "p99 ms",
            "max ms",
            "mark (p99)",
            "",
        ],
    );
    let many = options.count(100_000, 10_000);
    for others in [0, many] {
        let mut control = server.connect()?;
        held::hold(&mut control, others)?;
        let samples = lateness(server, options.count(50, 8))?;
        let p99 = quantile(&samples, 0.99);
        let mut row = vec![
            grouped((others + LANES) as f64),
            samples.len().to_string(),
            format!("{:.2}", quantile(&samples, 0.5)),
            format!("{p99:.2}"),
            format!("{:.2}", quantile(&samples, 1.0)),
        ];
        let what = format!("lateness of expiry, {others} locks held besides");
        row.extend(report.judge(&what, p99, Mark::AtMost(3.0)));
        table.row(row);
        control.call(&["FLUSHALL"])?;
    }
    table.note("Lateness = time of the waiter's grant - (time when the holder's ACQUIRE was sent + lease),");
    table.note("both by the client's clock: it counts the way of both to and from the server, and the last");
    table.note("millisecond through which a key lives. Leases of 20 to 60 ms, the waiter blocked meanwhile.");
    report.print(&table);
    Ok(())
}

/// Samples in milliseconds, `count` from each of several locks.
fn lateness(server: &Server, count: usize) -> Outcome<Vec<f64>> {
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| scope.spawn(move || one_lane(server, lane, count)))
            .collect();
        let mut samples = Vec::new();
        for lane in lanes {
            let result = lane.join().map_err(|_| "a lane panicked")?;
            samples.extend(result?);
        }
        Ok(samples)
    })
}

/// One lock, whose holder lets it run out again and again.
fn one_lane(server: &Server, lane: usize, count: usize) -> Outcome<Vec<f64>> {
    let key = format!("expiring:{lane}");
    let mut holder = server.connect()?;
    let mut waiter = server.connect()?;
    let mut samples = Vec::with_capacity(count);
    for sample in 0..count {
        let lease = 20 + (sample * 7 + lane * 11) as u64 % 41;
        let sent = SystemTime::now();
        integer(holder.call(&["RLOCK.ACQUIRE", &key, "holder", &lease.to_string()])?)?;
        integer(waiter.call(&["RLOCK.ACQUIRE", &key, "waiter", "30000", "BLOCK", "0"])?)?;
        let taken = sent.elapsed()?.as_secs_f64();
        samples.push((taken - Duration::from_millis(lease).as_secs_f64()) * 1e3);
        integer(waiter.call(&["RLOCK.RELEASE", &key, "waiter"])?)?;
    }
    Ok(samples)
}
