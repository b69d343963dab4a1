//! The end of a round: all programs give back what they have, and then nothing may be left.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rlock_torture::clock::now_us;
use rlock_torture::saw::{Left, Record};
use serde_json::json;

use crate::faults::Faults;
use crate::library::Library;
use crate::link::Link;
use crate::locks;
use crate::resp::Value;

/// Leases of those that were killed end meanwhile.
const LEFT: Duration = Duration::from_secs(30);
const COUNTERS: &str = "redisson_lock_token:";

/// While the drivers are there, with open connections: no lock is held and nobody waits.
pub fn all_free(faults: &mut Faults) -> io::Result<()> {
    let mut library = faults.plain.clone();
    look(faults, "all was released", |link| {
        let mut left = Vec::new();
        for key in locks::all() {
            left.extend(match &mut library {
                Some(library) => in_plain(link, library, key)?,
                None => in_module(link, key)?,
            });
        }
        Ok(left)
    })
}

fn in_module(link: &mut Link, key: &str) -> io::Result<Vec<String>> {
    let info = link.must(&format!("RLOCK.INFO {key}"))?;
    let mut left = holders(&info, key);
    for waiter in link.must(&format!("RLOCK.WAITERS {key}"))?.array() {
        let owner = waiter.get("owner").and_then(|owner| owner.text());
        left.push(format!("{} waits for {key}", owner.unwrap_or("?")));
    }
    Ok(left)
}

/// Who waits there has a place in the lock's queue.
fn in_plain(link: &mut Link, library: &mut Library, key: &str) -> io::Result<Vec<String>> {
    let info = library.call(link, "rlock1_info", (&[key], false), &[])?;
    let mut left = match &info {
        Value::Error(error) => vec![format!("{key}: {error}")],
        info => holders(info, key),
    };
    for place in link
        .must(&format!("ZRANGE rlock1_queue:{{{key}}} 0 -1"))?
        .array()
    {
        left.push(format!("{} waits for {key}", place.text().unwrap_or("?")));
    }
    Ok(left)
}

fn holders(info: &Value, key: &str) -> Vec<String> {
    let holders = info.get("holders").map_or(&[][..], |found| found.array());
    let owners = holders.iter().map(|holder| holder.get("owner"));
    let owners = owners.map(|owner| owner.and_then(Value::text).unwrap_or("?"));
    owners.map(|owner| format!("{owner} holds {key}")).collect()
}

/// After all of them have ended: no key and no hold. The counters of tokens stay.
pub fn nothing_left(faults: &mut Faults) -> io::Result<()> {
    let has_module = faults.plain.is_none();
    look(faults, "all drivers had ended", |link| {
        let mut left = Vec::new();
        for key in link.call(&["KEYS", "*"])?.array() {
            let key = key.text().unwrap_or("?");
            if !key.starts_with(COUNTERS) {
                left.push(format!("the key {key}"));
            }
        }
        let gauges = match has_module {
            true => link.info("rlock")?,
            false => Vec::new(),
        };
        for (name, value) in gauges {
            let counts = [
                "rlock_held",
                "rlock_watchdog_holds",
                "rlock_waiting",
                "rlock_queued",
            ];
            if counts.contains(&name.as_str()) && value != "0" {
                left.push(format!("{name}:{value}"));
            }
        }
        Ok(left)
    })
}

/// Each client keeps its locks by what it is to keep them by. It knows that once it has asked for
/// one: without need it has no connection.
pub fn backends(faults: &Faults) {
    let mut what = Vec::new();
    for driver in faults.drivers.iter().filter(|_| faults.plain.is_some()) {
        let hold = format!("{}.backend", driver.number);
        let words = json!({"key": "backend", "wait": 10_000, "lease": 5_000, "watchdog": false});
        driver.ask("acquire", &hold, words).finish();
        let says = driver.says_backend();
        driver.ask("release", &hold, json!({})).finish();
        if says.as_deref() != Some(driver.backend.name()) {
            let (number, name) = (driver.number, driver.name());
            let says = says.unwrap_or("none".to_owned());
            what.push(format!("driver {number} ({name}) has backend {says}"));
        }
    }
    faults.book.write(&Record::Left(Left {
        when: "all had come to rest".to_owned(),
        what,
        looked_at: 1,
    }));
}

fn look(
    faults: &mut Faults,
    when: &str,
    mut left: impl FnMut(&mut Link) -> io::Result<Vec<String>>,
) -> io::Result<()> {
    let end = Instant::now() + LEFT;
    let mut link = faults.server.link()?;
    let mut looked_at = 0;
    let what = loop {
        looked_at += 1;
        let what = left(&mut link)?;
        if what.is_empty() || Instant::now() > end {
            break what;
        }
        sleep(Duration::from_millis(20));
    };
    let at = now_us();
    let when = format!("{when}, at {at}");
    faults.book.write(&Record::Left(Left {
        when,
        what,
        looked_at,
    }));
    Ok(())
}
