//! The end of a round: everything can be freed, and nothing is left.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::figures::shown;
use crate::link::Link;
use crate::resp::Value;
use crate::server::Server;

/// All connections are closed; what is due because of that comes within this.
const BOUND: Duration = Duration::from_secs(20);

const DATABASES: u32 = 4;

/// As they are to be at rest.
const SETTINGS: [&str; 14] = [
    "CONFIG SET rlock.max-waiters 0",
    "CONFIG SET rlock.max-waiters-per-key 0",
    "CONFIG SET rlock.max-waiters-per-client 0",
    "CONFIG SET rlock.watchdog-lost close",
    "CONFIG SET rlock.fencing clock",
    "CONFIG SET rlock.deadlock-detection yes",
    "CONFIG SET rlock.redisson-compat yes",
    "CONFIG SET rlock.recovery-scan yes",
    "CONFIG SET rlock.recovery-scan-max 1000000",
    "CONFIG SET rlock.keep-place 15000",
    "CONFIG SET rlock.watchdog-max 0",
    "CONFIG SET rlock.redisson-yield 20",
    "CONFIG SET maxmemory 0",
    "DEBUG SET-ACTIVE-EXPIRE 1",
];

/// Settings as they are by default, and connections that are gone.
pub fn calm_down(server: &Server) -> Result<Link, String> {
    let lost = |error: io::Error| format!("at rest: {error}");
    let mut link = Link::open(server.port).map_err(lost)?;
    for line in ["REPLICAOF NO ONE", "CLIENT UNPAUSE"]
        .iter()
        .chain(&SETTINGS)
    {
        link.must(line).map_err(lost)?;
    }
    only_one_left(&mut link)?;
    Ok(link)
}

/// Frees everything; the memory that is used then.
pub fn rest(server: &mut Server) -> Result<u64, String> {
    let lost = |error: io::Error| format!("at rest: {error}");
    let mut link = calm_down(server)?;
    for db in 0..DATABASES {
        link.must(&format!("SELECT {db}")).map_err(lost)?;
        free_all(&mut link)?;
    }
    nothing_left(&mut link)?;
    for line in [
        "SCRIPT FLUSH",
        "ACL LOG RESET",
        "SLOWLOG RESET",
        "MEMORY PURGE",
    ] {
        link.must(line).map_err(lost)?;
    }
    if let Some(trouble) = server.trouble() {
        return Err(trouble);
    }
    gauge(&mut link, "memory", "used_memory").map_err(lost)
}

/// The server has seen that the others are closed.
fn only_one_left(link: &mut Link) -> Result<(), String> {
    eventually("connections closed", || {
        gauge(link, "clients", "connected_clients").map(|clients| clients == 1)
    })
}

fn free_all(link: &mut Link) -> Result<(), String> {
    let lost = |error: io::Error| format!("at rest: {error}");
    let keys = link.must("KEYS *").map_err(lost)?;
    for key in keys.items().iter().filter_map(Value::bytes) {
        let force = vec![b"RLOCK.FORCE".to_vec(), key.to_vec()];
        let exists = [b"EXISTS".to_vec(), key.to_vec()];
        match link.ask(&force).map_err(lost)? {
            Value::Int(1) if link.ask(&exists).map_err(lost)? != Value::Int(0) => {
                return Err(format!("freed, and there still: {}", shown(&force)));
            }
            Value::Int(_) => {}
            Value::Error(line) if line.starts_with(b"WRONGTYPE ") => {}
            other => return Err(format!("{}: {other:?}", shown(&force))),
        }
        link.ask(&[b"DEL".to_vec(), key.to_vec()]).map_err(lost)?;
    }
    // It counts keys that have run out until the server comes across them.
    let left = eventually("no key is left", || {
        Ok(link.must("DBSIZE")? == Value::Int(0))
    });
    left.map_err(|what| {
        format!(
            "{what}: {:?}",
            link.must("KEYS *").map(|keys| keys.to_string())
        )
    })
}

fn nothing_left(link: &mut Link) -> Result<(), String> {
    let gauges = [
        "rlock_held",
        "rlock_watchdog_holds",
        "rlock_waiting",
        "rlock_queued",
        "rlock_oldest_hold_ms",
        "rlock_oldest_wait_ms",
        "rlock_recovery_presumed",
    ];
    for name in gauges {
        eventually(&format!("{name} is 0"), || {
            gauge(link, "rlock", name).map(|value| value == 0)
        })?;
    }
    let top = link
        .ask(&["RLOCK.TOP"])
        .map_err(|error| error.to_string())?;
    let list = link
        .ask(&["RLOCK.LIST"])
        .map_err(|error| error.to_string())?;
    if !top.items().is_empty()
        || list
            .items()
            .get(1)
            .is_none_or(|page| !page.items().is_empty())
    {
        return Err(format!("something is left: {top:?} {list:?}"));
    }
    Ok(())
}

pub fn gauge(link: &mut Link, section: &str, name: &str) -> io::Result<u64> {
    let info = link.ask(&["INFO", section])?;
    let text = String::from_utf8_lossy(info.bytes().unwrap_or_default()).into_owned();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let value = lines
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.parse());
    value
        .and_then(Result::ok)
        .ok_or_else(|| io::Error::other(format!("no {name} in INFO")))
}

fn eventually(what: &str, mut is_so: impl FnMut() -> io::Result<bool>) -> Result<(), String> {
    let end = Instant::now() + BOUND;
    while !is_so().map_err(|error| error.to_string())? {
        if Instant::now() > end {
            return Err(format!("not within {BOUND:?}: {what}"));
        }
        sleep(Duration::from_millis(2));
    }
    Ok(())
}
