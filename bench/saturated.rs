//! How late a lock changes hands whose lease has run out while the server has more to do than
//! it can, and most of that takes locks with short leases itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::load::{command, integer, Expect, Load, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table};

/// Each sends more before it has the replies to what it has sent.
const FLOODS: usize = 8;
const DEPTH: usize = 64;
/// Of each flood, ms.
const LEASE: &str = "30";
const NAMES: usize = 20_000;
/// Of what is measured, ms.
const MEASURED: u64 = 50;

const NOTES: [&str; 4] = [
    "Eight connections, each with 64 commands in flight, take locks with a lease of 30 ms (set keys",
    "with PX 30), a new name each time; beside them a lock with a lease of 50 ms that its holder",
    "lets run out goes to who waits for it (a BLPOP of 50 ms times out). Left: locks that count as",
    "held (keys that DBSIZE counts) when the flood ends, of so many a second.",
];

/// One kind of flood, and what is late beside it.
struct Kind {
    name: &'static str,
    flood: fn(usize) -> Vec<u8>,
    expect: Expect,
    /// From its begin to its end, which is to take `MEASURED`.
    one: fn(&Server, usize) -> Outcome<Duration>,
    left: fn(&Server) -> Outcome<f64>,
}

const OURS: Kind = Kind {
    name: "rlock",
    flood: |number| command(&["RLOCK.ACQUIRE", &format!("flood:{number}"), "owner", LEASE]),
    expect: Expect::Integer,
    one: hand_over,
    left: |server| server.connect()?.info_number("rlock", "rlock_held"),
};

const THEIRS: Kind = Kind {
    name: "BLPOP beside SET PX",
    flood: |number| command(&["SET", &format!("flood:{number}"), "owner", "PX", LEASE]),
    expect: Expect::Exactly("+OK\r\n"),
    one: time_out,
    left: |server| Ok(integer(server.connect()?.call(&["DBSIZE"])?)? as f64),
};

pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let columns = [
        "", "a second", "samples", "p50 ms", "p99 ms", "max ms", "left",
    ];
    let mut table = Table::new("Lateness under saturation", &columns);
    for (kind, module) in [(OURS, options.module.as_deref()), (THEIRS, None)] {
        let server = Server::start(&options.server, module)?;
        let time = Duration::from_secs(options.count(8, 1) as u64);
        let (rate, samples) = beside_a_flood(&server, &kind, time)?;
        let ms = |share| format!("{:.1}", samples.value_at_quantile(share) as f64 / 1e3);
        table.row(vec![
            kind.name.into(),
            grouped(rate),
            samples.len().to_string(),
            ms(0.5),
            ms(0.99),
            ms(1.0),
            grouped((kind.left)(&server)?),
        ]);
    }
    NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);
    Ok(())
}

/// How many commands of the flood a second, and how late what was measured was, us.
fn beside_a_flood(server: &Server, kind: &Kind, time: Duration) -> Outcome<(f64, Histogram<u64>)> {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let floods: Vec<_> = (0..FLOODS)
            .map(|flood| {
                scope.spawn(move || {
                    let names = flood * NAMES..(flood + 1) * NAMES;
                    let all: Vec<Vec<u8>> = names.map(kind.flood).collect();
                    let mut connection = server.connect()?;
                    Load::new(DEPTH, &all, &[kind.expect]).run(&mut connection, time)
                })
            })
            .collect();
        let ends = &ends;
        let measured = scope.spawn(move || -> Outcome<Histogram<u64>> {
            let mut samples = Histogram::new_with_bounds(1, 60_000_000, 3)?;
            for number in 0.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                let took = (kind.one)(server, number)?;
                let late = took.checked_sub(Duration::from_millis(MEASURED));
                let late = late.ok_or("it ended before its time")?;
                samples.saturating_record(late.as_micros() as u64);
            }
            Ok(samples)
        });
        let mut rate = 0.0;
        for flood in floods {
            rate += flood.join().map_err(|_| "a flood panicked")??.per_second();
        }
        ends.store(true, Ordering::Relaxed);
        let samples = measured.join().map_err(|_| "what measures panicked")??;
        Ok((rate, samples))
    })
}

fn hand_over(server: &Server, number: usize) -> Outcome<Duration> {
    let key = format!("expiring:{number}");
    let (mut holder, mut waiter) = (server.connect()?, server.connect()?);
    let sent = Instant::now();
    integer(holder.call(&["RLOCK.ACQUIRE", &key, "holder", &MEASURED.to_string()])?)?;
    integer(waiter.call(&["RLOCK.ACQUIRE", &key, "waiter", "1000", "BLOCK", "0"])?)?;
    Ok(sent.elapsed())
}

fn time_out(server: &Server, number: usize) -> Outcome<Duration> {
    let seconds = (MEASURED as f64 / 1e3).to_string();
    let mut waiter = server.connect()?;
    let sent = Instant::now();
    waiter.call(&["BLPOP", &format!("list:{number}"), &seconds])?;
    Ok(sent.elapsed())
}
