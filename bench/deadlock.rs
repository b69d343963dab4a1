//! What it costs a request that blocks to be checked for a deadlock: among many
//! who wait for one lock, and among many who wait for several at once.

use crate::load::{command, Connection, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table};
use crate::stats::median;

/// Locks that are waited for.
const LOCKS: usize = 8;

/// Requests between two looks at the server's clock.
const BATCH: usize = 20;

/// How those wait who are there already.
#[derive(Clone, Copy)]
enum Crowd {
    /// All for one lock, and for no other.
    One,
    /// Each for two of the locks at once.
    Pairs,
}

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let waiters = options.count(10_000, 500);
    let mut table = Table::new(
        "Deadlock detection",
        &[
            "who waits",
            "the request's owner",
            "server us/request",
            "without detection",
            "detection, us",
        ],
    );
    for (crowd, name) in [
        (Crowd::One, "for one lock"),
        (Crowd::Pairs, "for 2 of 8 locks each"),
    ] {
        let server = Server::start(&options.server, options.module.as_deref())?;
        let mut control = server.connect()?;
        let _crowd = gather(&server, &mut control, crowd, waiters)?;
        for (holds, owner) in [(false, "holds nothing"), (true, "is waited for")] {
            let batches = options.count(10, 2);
            let (mut with, mut without) = (Vec::new(), Vec::new());
            for batch in 0..batches * 2 {
                let on = batch % 2 == 0;
                let setting = if on { "yes" } else { "no" };
                control.call(&["CONFIG", "SET", "rlock.deadlock-detection", setting])?;
                let us = block(&server, &mut control, holds, batch)?;
                if on { &mut with } else { &mut without }.push(us);
            }
            let (with, without) = (median(&with), median(&without));
            table.row([
                format!("{} {name}", grouped(waiters as f64)),
                owner.to_owned(),
                format!("{with:.1}"),
                format!("{without:.1}"),
                format!("{:.1}", with - without),
            ]);
        }
    }
    table.note("Processor time of the server for one more request that blocks on the same locks,");
    table.note(format!(
        "medians over batches of {BATCH}; it includes what a blocked client costs in any case."
    ));
    report.print(&table);
    Ok(())
}

fn lock(number: usize) -> String {
    format!("lock:{}", number % LOCKS)
}

/// Holds the locks, and has many wait for them.
fn gather(
    server: &Server,
    control: &mut Connection,
    crowd: Crowd,
    count: usize,
) -> Outcome<Vec<Connection>> {
    for number in 0..LOCKS {
        control.call(&["RLOCK.ACQUIRE", &lock(number), "holder", "600000"])?;
    }
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        let mut client = server.connect_small()?;
        let owner = format!("waiter:{number}");
        client.send(&match crowd {
            Crowd::One => command(&["RLOCK.ACQUIRE", &lock(0), &owner, "600000", "BLOCK", "0"]),
            Crowd::Pairs => {
                let (one, other) = (lock(number), lock(number / LOCKS + number + 1));
                let other = if one == other {
                    lock(number + 1)
                } else {
                    other
                };
                let keys = ["RLOCK.MACQUIRE", "2", &one, &other];
                command(&[&keys[..], &[&owner, "600000", "BLOCK", "0"]].concat())
            }
        })?;
        clients.push(client);
    }
    until_blocked(control, count)?;
    Ok(clients)
}

/// One batch of requests that block: microseconds of the server for each.
/// `holds`: their owners have locks that others wait for, so that a cycle is
/// possible and has to be looked for.
fn block(server: &Server, control: &mut Connection, holds: bool, batch: usize) -> Outcome<f64> {
    let mut others = Vec::new();
    let mut clients = Vec::new();
    for number in 0..BATCH {
        let own = format!("own:{batch}:{number}");
        let owner = format!("asks:{batch}:{number}");
        if holds {
            control.call(&["RLOCK.ACQUIRE", &own, &owner, "600000"])?;
            let mut other = server.connect_small()?;
            other.send(&command(&[
                "RLOCK.ACQUIRE",
                &own,
                "other",
                "600000",
                "BLOCK",
                "0",
            ]))?;
            others.push(other);
        }
        clients.push((server.connect_small()?, owner));
    }
    let blocked = control.info_number("clients", "blocked_clients")? as usize;
    let blocked = blocked.max(others.len());
    let before = control.server_cpu()?;
    for (client, owner) in &mut clients {
        client.send(&command(&[
            "RLOCK.ACQUIRE",
            &lock(0),
            owner,
            "600000",
            "BLOCK",
            "0",
        ]))?;
    }
    until_blocked(control, blocked + BATCH)?;
    let used = control.server_cpu()? - before;
    Ok(used * 1e6 / BATCH as f64)
}

fn until_blocked(control: &mut Connection, count: usize) -> Outcome<()> {
    while control.info_number("clients", "blocked_clients")? < count as f64 {}
    Ok(())
}
