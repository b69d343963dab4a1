//! What a held lock and a waiter take, by the server's own count, beside what
//! it takes for the like of its own.

use crate::held;
use crate::load::{command, Connection, Expect, Load, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table};

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let locks = options.count(100_000, 10_000);
    let waiters = options.count(1_000, 200);
    let mut table = Table::new("Memory", &["", "number", "bytes each"]);
    let mut row = |name: &str, number: usize, bytes: f64| {
        table.row([name.to_owned(), grouped(number as f64), grouped(bytes)]);
    };

    let start = || Server::start(&options.server, options.module.as_deref());
    let bytes = per_lock(&start()?, locks)?;
    row("lock held", locks, bytes);
    let bytes = per_key(&start()?, locks, |control| hold_hashes(control, locks))?;
    row("hash of one field with a TTL", locks, bytes);

    let wait = ["RLOCK.ACQUIRE", "lock", "waiter", "30000", "BLOCK", "0"];
    let bytes = per_waiter(options, waiters, |number| {
        let owner = format!("waiter:{number}");
        let mut parts = wait;
        parts[2] = &owner;
        command(&parts)
    })?;
    row("waiter of rlock", waiters, bytes);
    let bytes = per_waiter(options, waiters, |_| command(&["BLPOP", "list", "0"]))?;
    row("client blocked in BLPOP", waiters, bytes);

    table.note(
        "Growth of used_memory; a waiter's without what its connection took before it blocked.",
    );
    report.print(&table);
    Ok(())
}

fn used(control: &mut Connection) -> Outcome<f64> {
    control.info_number("memory", "used_memory")
}

/// Bytes for each of `count` locks that are held.
pub fn per_lock(server: &Server, count: usize) -> Outcome<f64> {
    per_key(server, count, |control| held::hold(control, count))
}

/// Bytes for each of `count` keys that `fill` makes.
fn per_key(
    server: &Server,
    count: usize,
    fill: impl Fn(&mut Connection) -> Outcome<()>,
) -> Outcome<f64> {
    let before = used(&mut server.connect()?)?;
    fill(&mut server.connect()?)?;
    let after = used(&mut server.connect()?)?;
    Ok((after - before) / count as f64)
}

/// The keys that held locks are, made without the module.
fn hold_hashes(control: &mut Connection, count: usize) -> Outcome<()> {
    let pair = |number| {
        let key = held::name(number);
        [
            command(&["HSET", &key, "holder", "1"]),
            command(&["PEXPIRE", &key, "600000"]),
        ]
    };
    let commands: Vec<Vec<u8>> = (0..count).flat_map(pair).collect();
    Load::new(64, &commands, &[Expect::Integer]).run_once(control)?;
    Ok(())
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
