//! The end of a round: all programs give back what they have, and then nothing may be left.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rlock_torture::clock::now_us;
use rlock_torture::saw::{Left, Record};

use crate::faults::Faults;
use crate::link::Link;
use crate::locks;

/// Leases of those that were killed end meanwhile.
const LEFT: Duration = Duration::from_secs(30);

/// While the drivers are there, with open connections: no lock is held and nobody waits.
pub fn all_free(faults: &mut Faults) -> io::Result<()> {
    look(faults, "all was released", |link| {
        let mut left = Vec::new();
        for key in locks::all() {
            let info = link.must(&format!("RLOCK.INFO {key}"))?;
            let holders = info.get("holders").map_or(&[][..], |found| found.array());
            for holder in holders {
                let owner = holder.get("owner").and_then(|owner| owner.text());
                left.push(format!("{} holds {key}", owner.unwrap_or("?")));
            }
            for waiter in link.must(&format!("RLOCK.WAITERS {key}"))?.array() {
                let owner = waiter.get("owner").and_then(|owner| owner.text());
                left.push(format!("{} waits for {key}", owner.unwrap_or("?")));
            }
        }
        Ok(left)
    })
}

/// After all of them have ended: no key and no hold.
pub fn nothing_left(faults: &mut Faults) -> io::Result<()> {
    look(faults, "all drivers had ended", |link| {
        let mut left = Vec::new();
        for key in link.call(&["KEYS", "*"])?.array() {
            left.push(format!("the key {}", key.text().unwrap_or("?")));
        }
        for (name, value) in link.info("rlock")? {
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

fn look(
    faults: &mut Faults,
    when: &str,
    left: impl Fn(&mut Link) -> io::Result<Vec<String>>,
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
