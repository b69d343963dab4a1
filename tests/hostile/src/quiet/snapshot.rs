//! All that can be seen of keys and locks, but for what passes by itself.

use std::collections::BTreeSet;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::args;
use crate::draw::Args;
use crate::link::Link;
use crate::resp::Value;

/// These change while time passes.
const PASSES: [&str; 5] = [
    "remaining-ms",
    "held-ms",
    "waited-ms",
    "oldest-wait-ms",
    "wanted-ms",
];

const GAUGES: [&str; 4] = [
    "rlock_held:",
    "rlock_watchdog_holds:",
    "rlock_waiting:",
    "rlock_queued:",
];

/// A lease that is over within this is one that ends soon.
const SOON_MS: i64 = 60_000;

/// The databases that are drawn.
const DATABASES: [&str; 2] = ["0", "1"];

/// Lines that say what there is, to be compared.
pub type Snapshot = Vec<String>;

/// Of all keys, and of all that somebody waits for.
pub fn of_all(control: &mut Link) -> io::Result<Snapshot> {
    let mut lines = Vec::new();
    let info = control.must("INFO rlock")?.all_text();
    let is_gauge = |line: &&str| GAUGES.iter().any(|name| line.starts_with(name));
    lines.extend(info.lines().filter(is_gauge).map(str::to_owned));
    for db in DATABASES {
        let names = names(control, db)?;
        lines.extend(of_keys(control, db, &names)?);
    }
    Ok(lines)
}

/// The keys of a database, and those that are waited for there.
pub fn names(control: &mut Link, db: &str) -> io::Result<BTreeSet<Vec<u8>>> {
    let asked: [Args; 3] = [
        args!["SELECT", db],
        args!["KEYS", "*"],
        args!["RLOCK.TOP", "COUNT", "1000"],
    ];
    let replies = control.ask_all(&asked)?;
    let (keys, top) = (&replies[1], &replies[2]);
    let here = |lock: &&Value| lock.get("db").and_then(Value::int) == db.parse().ok();
    let waited = top.items().iter().filter(here);
    let waited = waited.filter_map(|lock| lock.get("key"));
    let all = keys.items().iter().chain(waited);
    Ok(all.filter_map(Value::bytes).map(<[u8]>::to_vec).collect())
}

pub fn of_keys(control: &mut Link, db: &str, names: &BTreeSet<Vec<u8>>) -> io::Result<Snapshot> {
    control.must(&format!("SELECT {db}"))?;
    let about = |key: &Vec<u8>| -> [Args; 4] {
        [
            args!["DEBUG", "DIGEST-VALUE", key],
            args!["PEXPIRETIME", key],
            args!["RLOCK.INFO", key],
            args!["RLOCK.WAITERS", key],
        ]
    };
    let asked: Vec<Args> = names.iter().flat_map(about).collect();
    let replies = control.ask_all(&asked)?;
    let line = |(key, replies): (&Vec<u8>, &[Value])| {
        let said: Vec<_> = replies
            .iter()
            .map(|reply| still(reply).to_string())
            .collect();
        format!("{db} {}: {}", key.escape_ascii(), said.join(" "))
    };
    Ok(names.iter().zip(replies.chunks(4)).map(line).collect())
}

/// Whether a lease ends so soon that nobody could tell who ended it.
pub fn is_restless(control: &mut Link) -> io::Result<bool> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let soon = i64::try_from(now.as_millis()).unwrap_or(i64::MAX) + SOON_MS;
    for db in DATABASES {
        let names = names(control, db)?;
        let asked: Vec<Args> = names.iter().map(|key| args!["PEXPIRETIME", key]).collect();
        let ends = control.ask_all(&asked)?;
        if ends
            .iter()
            .filter_map(Value::int)
            .any(|end| (1..soon).contains(&end))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same without what passes.
fn still(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(still).collect()),
        Value::Map(items) => {
            let pair = |pair: &[Value]| {
                let passes = pair[0]
                    .bytes()
                    .is_some_and(|name| PASSES.iter().any(|passes| passes.as_bytes() == name));
                let is_there = !pair[1].is_null();
                let said = if passes {
                    Value::Int(is_there.into())
                } else {
                    still(&pair[1])
                };
                [pair[0].clone(), said]
            };
            Value::Map(items.chunks(2).flat_map(pair).collect())
        }
        other => other.clone(),
    }
}

/// The lines that differ.
pub fn difference(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let only = |here: &Snapshot, there: &Snapshot, sign: char| -> Vec<String> {
        let gone = here.iter().filter(|line| !there.contains(line));
        gone.map(|line| format!("{sign} {line}")).collect()
    };
    let lines = [only(before, after, '-'), only(after, before, '+')].concat();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
