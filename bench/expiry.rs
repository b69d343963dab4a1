//! How late a lock changes hands whose lease has run out while its holder did
//! nothing: with few locks held, and with very many.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::held;
use crate::load::{integer, Outcome, Server};
use crate::options::Options;
use crate::picture::{self, Lines, Series};
use crate::report::{grouped, Report, Table, Target};

/// Locks that are held besides; the last number has the target.
const HELD: [usize; 3] = [1, 10_000, 1_000_000];
const MOST_MS: f64 = 3.0;

/// Locks that run out at the same time, more or less.
const LANES: usize = 4;

const NOTES: [&str; 5] = [
    "Lateness = time of the waiter's grant - (time when the holder's ACQUIRE was sent + lease),",
    "both by the client's clock: it counts the way of both to and from the server, and the last",
    "millisecond through which a key lives. Four locks with leases of 20 to 60 ms, one waiter",
    "blocked for each meanwhile. A server for each row; the rows take turns. The locks held",
    "besides have leases of ten minutes and more.",
];

/// Measures with few and with very many locks held, prints and draws.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let most = options.count(usize::MAX, 10_000);
    let mut rows = Vec::new();
    for held in HELD.into_iter().filter(|held| *held <= most) {
        let server = Server::start(&options.server, options.module.as_deref())?;
        held::hold(&mut server.connect()?, held)?;
        // Microseconds, up to a minute.
        rows.push((
            held,
            server,
            Histogram::<u64>::new_with_bounds(1, 60_000_000, 3)?,
        ));
    }
    for _ in 0..options.count(5, 1) {
        for (_, server, samples) in &mut rows {
            for micros in lateness(server, options.count(25, 8))? {
                samples.saturating_record(micros);
            }
        }
    }
    let columns = [
        "locks held",
        "samples",
        "p50 ms",
        "p99 ms",
        "max ms",
        "target (p99)",
        "",
    ];
    let mut table = Table::new("Lateness of expiry", &columns);
    let mut series = Series::new();
    for (held, _, samples) in &rows {
        let ms = |share| samples.value_at_quantile(share) as f64 / 1e3;
        let mut row = vec![grouped(*held as f64), samples.len().to_string()];
        for share in [0.5, 0.99, 1.0] {
            row.push(format!("{:.2}", ms(share)));
        }
        for (name, share) in [("rlock, p50", 0.5), ("rlock, p99", 0.99)] {
            picture::add(&mut series, name, (*held as f64, ms(share)));
        }
        if *held == HELD[2] {
            let what = format!("lateness of expiry, p99 in ms, {} locks held", row[0]);
            row.extend(report.judge(&what, ms(0.99), Target::AtMost(MOST_MS)));
        }
        table.row(row);
    }
    NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);
    let lines = Lines {
        title: "how late a waiter has a lock whose lease has run out".into(),
        x: "locks held",
        y: "milliseconds",
        series,
    };
    report.picture("expiry", &[lines])
}

/// Samples in microseconds, `count` from each of several locks.
fn lateness(server: &Server, count: usize) -> Outcome<Vec<u64>> {
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
fn one_lane(server: &Server, lane: usize, count: usize) -> Outcome<Vec<u64>> {
    let key = format!("expiring:{lane}");
    let mut holder = server.connect()?;
    let mut waiter = server.connect()?;
    let mut samples = Vec::with_capacity(count);
    for sample in 0..count {
        let lease = 20 + (sample * 7 + lane * 11) as u64 % 41;
        let sent = Instant::now();
        integer(holder.call(&["RLOCK.ACQUIRE", &key, "holder", &lease.to_string()])?)?;
        integer(waiter.call(&["RLOCK.ACQUIRE", &key, "waiter", "30000", "BLOCK", "0"])?)?;
        let late = sent.elapsed().checked_sub(Duration::from_millis(lease));
        samples.push(
            late.ok_or("a lock was granted before its lease was over")?
                .as_micros() as u64,
        );
        integer(waiter.call(&["RLOCK.RELEASE", &key, "waiter"])?)?;
    }
    Ok(samples)
}
