//! What a held lock and a waiter take, by the server's own count, beside the
//! like of its own.

use crate::held;
use crate::load::{command, Connection, Outcome, Server, Session};
use crate::options::Options;
use crate::picture::Bars;
use crate::report::{grouped, Report, Table, Target};
use crate::sessions;

/// A queued waiter of one lock, with many, takes no more of rlock's.
const TARGET_BYTES: f64 = 400.0;

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let locks = options.count(100_000, 10_000);
    let waiters = options.count(1_000, 200);
    let columns = ["", "number", "bytes each", "target", ""];
    let mut table = Table::new("Memory", &columns);
    let mut bars = Vec::new();
    let mut row = |name: &str, number: usize, bytes: f64, verdict: Option<[String; 2]>| {
        // Of two numbers of the same the larger counts.
        bars.retain(|(known, _): &(String, f64)| known != name);
        bars.push((name.to_owned(), bytes));
        let cells = [name.to_owned(), grouped(number as f64), grouped(bytes)];
        table.row(cells.into_iter().chain(verdict.into_iter().flatten()));
    };

    let start = || Server::start(&options.server, options.module.as_deref());
    let bytes = per_lock(&start()?, locks)?;
    row("rlock: lock held", locks, bytes, None);
    let bytes = per_key(&start()?, locks, |control| held::hashes(control, locks))?;
    row("hash of one field, with a TTL", locks, bytes, None);

    let wait = ["RLOCK.ACQUIRE", "lock", "waiter", "30000", "BLOCK", "0"];
    let bytes = per_waiter(options, waiters, |number| {
        let owner = format!("waiter:{number}");
        let mut parts = wait;
        parts[2] = &owner;
        command(&parts)
    })?;
    row("rlock: blocked waiter", waiters, bytes, None);
    let bytes = per_waiter(options, waiters, |_| command(&["BLPOP", "list", "0"]))?;
    row("client blocked in BLPOP", waiters, bytes, None);

    for queued in [options.count(10_000, 1_000), options.count(100_000, 5_000)] {
        for (name, time) in [
            ("rlock: queued waiter, one lock", "0"),
            ("rlock: the same with a time-out", "600000"),
        ] {
            let bytes = per_queued(&start()?, queued, 1, time)?;
            let what = format!("{name}, {queued} of them");
            let verdict = report.judge(&what, bytes, Target::AtMost(TARGET_BYTES));
            row(name, queued, bytes, Some(verdict));
        }
        let bytes = per_queued(&start()?, queued, queued, "0")?;
        row("rlock: queued waiter, a lock each", queued, bytes, None);
    }

    table.note(
        "Growth of used_memory; a waiter's without what its connection took before it blocked.",
    );
    table.note(
        "All queued waiters are of one connection, by owners with names of 46 bytes. For as many",
    );
    table.note(
        "locks each has a queue of its own, which is counted, too; the locks are held before.",
    );
    report.print(&table);
    let bars = Bars {
        title: "memory: bytes of the server for each".into(),
        bars,
    };
    report.picture("memory", &[bars])
}

fn used(control: &mut Connection) -> Outcome<f64> {
    control.info_number("memory", "used_memory")
}

/// Bytes for each of `count` locks that are held.
pub fn per_lock(server: &Server, count: usize) -> Outcome<f64> {
    per_key(server, count, |control| held::hold(control, count))
}

/// Bytes for each of `count` keys that `fill` makes.
pub fn per_key(
    server: &Server,
    count: usize,
    fill: impl Fn(&mut Connection) -> Outcome<()>,
) -> Outcome<f64> {
    let before = used(&mut server.connect()?)?;
    fill(&mut server.connect()?)?;
    let after = used(&mut server.connect()?)?;
    Ok((after - before) / count as f64)
}

/// Bytes for each of `count` connections that `block` puts to sleep.
fn per_waiter(options: &Options, count: usize, block: impl Fn(usize) -> Vec<u8>) -> Outcome<f64> {
    let server = Server::start(&options.server, options.module.as_deref())?;
    let mut control = server.connect()?;
    if options.module.is_some() {
        control.call(&["RLOCK.ACQUIRE", "lock", "holder", "600000"])?;
    }
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(server.connect_small()?);
    }
    let before = used(&mut control)?;
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&block(number))?;
    }
    while control.info_number("clients", "blocked_clients")? < count as f64 {}
    Ok((used(&mut control)? - before) / count as f64)
}

/// Bytes for each of `count` queued waiters of one connection, for so many locks.
fn per_queued(server: &Server, count: usize, locks: usize, time: &str) -> Outcome<f64> {
    let mut control = server.connect()?;
    held::hold(&mut control, locks)?;
    let mut session = Session::on(server.connect()?)?;
    let wait = |number: usize| {
        let (key, owner) = (held::name(number % locks), sessions::owner(number));
        session.wait(&key, &owner, ["600000", time], number)
    };
    let waits: Vec<Vec<u8>> = (0..count).map(wait).collect();
    let before = used(&mut control)?;
    session.queue(&waits)?;
    Ok((used(&mut control)? - before) / count as f64)
}
