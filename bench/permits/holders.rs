//! What very many holders of one lock take beyond the hash that they are.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::load::{command, integer, Connection, Expect, Load, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};
use crate::sessions;

/// A holder takes no more beside its field.
const TARGET_BYTES: f64 = 250.0;

const KEY: &str = "pool";

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = options.count(100_000, 10_000);
    let start = |module| Server::start(&options.server, module);
    let like = grown(&start(None)?, count, &like(count)?)?;
    let mut table = Table::new(
        "Memory of the holders of one lock",
        &["", "holders", "bytes each", "beyond the hash", "target", ""],
    );
    let number = grouped(count as f64);
    let hash = "the same hash, by a server without the module";
    table.row([hash.to_owned(), number.clone(), grouped(like)]);
    for (name, words) in [
        ("holders of a permit", &[][..]),
        ("the same with WATCHDOG", &["WATCHDOG"]),
    ] {
        let server = start(options.module.as_deref())?;
        let bytes = grown(&server, count, &holds(count, words))?;
        let beyond = bytes - like;
        let cells = [
            name.to_owned(),
            number.clone(),
            grouped(bytes),
            grouped(beyond),
        ];
        // What a watchdog takes is its own.
        let judged = words.is_empty();
        let verdict = judged.then(|| report.judge(name, beyond, Target::AtMost(TARGET_BYTES)));
        table.row(cells.into_iter().chain(verdict.into_iter().flatten()));
    }
    table.note("Growth of used_memory by so many owners of one key, with names of 46 bytes, by");
    table.note("RLOCK.ACQUIRE with LIMIT, and by HSET of what that leaves in the keyspace.");
    report.print(&table);
    Ok(())
}

/// The requests by which so many hold a permit each.
fn holds(count: usize, words: &[&str]) -> Vec<Vec<u8>> {
    let limit = count.to_string();
    let hold = |number| {
        let (owner, lease) = (sessions::owner(number), lease(number).to_string());
        let acquire = ["RLOCK.ACQUIRE", KEY, &owner, &lease, "LIMIT", &limit];
        command(&[&acquire[..], words].concat())
    };
    (0..count).map(hold).collect()
}

/// Those that make the same hash.
fn like(count: usize) -> Outcome<Vec<Vec<u8>>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let pool = format!("permits {count} {count} {count}");
    let mut all = vec![
        command(&["HSET", KEY, "mode", &pool]),
        command(&["PEXPIRE", KEY, &lease(count).to_string()]),
    ];
    all.extend((0..count).map(|number| {
        let permit = format!("1@{}", now + lease(number) as u128);
        command(&["HSET", KEY, &sessions::owner(number), &permit])
    }));
    Ok(all)
}

/// ms; all differ.
fn lease(number: usize) -> usize {
    600_000 + number * 7
}

/// Bytes for each of `count` holders by these requests.
fn grown(server: &Server, count: usize, requests: &[Vec<u8>]) -> Outcome<f64> {
    let used = |control: &mut Connection| control.info_number("memory", "used_memory");
    let before = used(&mut server.connect()?)?;
    // Watchdogs last as long as their connection.
    let mut connection = server.connect()?;
    Load::new(64, requests, &[Expect::Integer]).run_once(&mut connection)?;
    let fields = integer(server.connect()?.call(&["HLEN", KEY])?)?;
    if fields != count as i64 + 1 {
        return Err(format!("{fields} fields of {count} holders").into());
    }
    let after = used(&mut server.connect()?)?;
    Ok((after - before) / count as f64)
}
