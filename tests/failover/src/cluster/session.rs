//! A queued waiter with a sharded channel in the slot of its lock.

use super::judge::{Held, Mode};
use super::load::{Load, LEASE};
use super::nodes::{map, slot_of};
use crate::clock::{now_us, pause};
use crate::conn::{Conn, Gone};
use crate::judge::ROUNDING;
use crate::resp::Value;
use crate::world::code;

const WAIT: u64 = 2_000;
/// Beyond its time, ms.
const GRACE: u64 = 10_000;

enum End {
    Granted(u64),
    Over,
    /// It moved, or the connection is gone: ask again.
    Again,
}

/// Asks until it is granted or told that it is not.
pub fn work(load: &Load, key: &str, owner: &str) {
    load.count("requests");
    for _ in 0..200 {
        let port = map(&load.ports)[usize::from(slot_of(key))];
        let Ok(mut conn) = Conn::open(port) else {
            pause(20);
            continue;
        };
        match wait(load, &mut conn, key, owner) {
            Ok(End::Granted(call)) => {
                load.count("grants");
                return hold(load, &mut conn, key, owner, call);
            }
            Ok(End::Over) => return,
            Ok(End::Again) => pause(10),
            Err(gone) => {
                load.count(&format!("{gone:?}").to_lowercase());
                pause(20);
            }
        }
        if load.is_over() {
            return;
        }
    }
    load.count("gave up");
}

fn wait(load: &Load, conn: &mut Conn, key: &str, owner: &str) -> Result<End, Gone> {
    conn.ask("HELLO 3")?;
    let channel = format!("rlock:{{{key}}}:{owner}");
    if let Value::Error(text) = conn.ask(&format!("SSUBSCRIBE {channel}"))? {
        load.count(&format!("ssubscribe {}", code(&text)));
        return Ok(End::Again);
    }
    let call = now_us();
    let until = call + (WAIT + GRACE) * 1000;
    conn.send(&[format!(
        "RLOCK.ACQUIRE {key} {owner} {LEASE} QUEUE {WAIT} NOTIFY {channel} t WATCHDOG ONCE"
    )])?;
    loop {
        let words = match conn.next(until) {
            Ok(Value::Push(words)) => words,
            Ok(Value::Int(_)) => return Ok(End::Granted(call)),
            Ok(Value::Error(text)) => {
                load.count(&format!("queue {}", code(&text)));
                return Ok(End::Again);
            }
            Ok(_) => continue,
            Err(Gone::Silent) => {
                load.count("UNANSWERED");
                return Ok(End::Over);
            }
            Err(gone) => return Err(gone),
        };
        let text = |at: usize| words.get(at).and_then(Value::text).unwrap_or_default();
        let message: Vec<&str> = text(2).split(' ').collect();
        match (text(0), message[0]) {
            ("sunsubscribe", _) => {
                load.count("channel moved");
                return Ok(End::Again);
            }
            ("smessage", "granted") => return Ok(End::Granted(call)),
            ("smessage", "timeout") => {
                load.count("not had");
                return Ok(End::Over);
            }
            ("smessage", "error" | "lost") => {
                let what = message.get(2).copied().unwrap_or_default();
                load.count(&format!("told {} {what}", message[0]));
                return Ok(End::Again);
            }
            _ => {}
        }
    }
}

fn hold(load: &Load, conn: &mut Conn, key: &str, owner: &str, call: u64) {
    let mut from = now_us();
    if load.with_wait {
        // WAIT alone would not know of a grant that came by a message.
        let renewed = conn.ask(&format!("RLOCK.RENEW {key} {owner} {LEASE}"));
        let waited = conn.ask("WAIT 1 100");
        from = now_us();
        if !matches!((renewed, waited), (Ok(Value::Int(1)), Ok(Value::Int(1..)))) {
            return load.count("WAIT too few");
        }
    }
    let until = from + fastrand::u64(..12_000);
    let told = loop {
        match conn.next(until) {
            Err(Gone::Silent) => break false,
            Err(Gone::Closed) => break true,
            Ok(Value::Push(_)) => break true,
            Ok(_) => {}
        }
    };
    let sent = now_us();
    if told {
        return load.count("session told of a loss");
    }
    load.notes().held.push(Held {
        key: key.to_owned(),
        owner: owner.to_owned(),
        mode: Mode::Alone,
        from,
        to: sent.min((call + LEASE * 1000).saturating_sub(ROUNDING)),
    });
    let released = conn.send(&[format!("RLOCK.RELEASE {key} {owner}")]);
    let reply = released.and_then(|()| loop {
        match conn.next(now_us() + 10_000_000) {
            Ok(Value::Push(_)) => load.count("session told at its release"),
            other => break other,
        }
    });
    match reply {
        Ok(Value::Int(_)) => load.count("released"),
        Ok(Value::Error(text)) => load.count(&format!("session release: {}", code(&text))),
        // Its close ends the hold, as it is a watchdog's.
        _ => load.count("session closed at its release"),
    }
}
