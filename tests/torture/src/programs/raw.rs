//! Those who ask the server without a client: for the same locks, over connections that nothing
//! is done to, with plain leases.

use std::io::{self, Error};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::saw::{Ask, Record};
use serde_json::{json, Value as Json};

use crate::book::Book;
use crate::link::Link;
use crate::locks;
use crate::resp::Value;

pub struct Raw {
    pub number: usize,
    pub server: u16,
    pub rng: Rng,
    pub book: Arc<Book>,
    pub stop: Arc<AtomicBool>,
}

impl Raw {
    /// A connection after the other, for the server is killed at times.
    pub fn play(mut self) {
        let mut count = 0;
        while !self.stop.load(SeqCst) {
            let Ok(mut link) = Link::open_within(self.server, Duration::from_secs(20)) else {
                sleep(Duration::from_millis(20));
                continue;
            };
            while !self.stop.load(SeqCst) {
                count += 1;
                if self.turn(&mut link, count).is_err() {
                    break;
                }
            }
        }
    }

    fn turn(&mut self, link: &mut Link, count: u64) -> io::Result<()> {
        let hold = format!("0.{}.{count}", self.number);
        let mut words = locks::draw(&mut self.rng);
        let lease = self.rng.u64(200..1500);
        words["lease"] = lease.into();
        words["watchdog"] = false.into();
        let mut options = options(&words);
        options += &format!(" BLOCK {}", self.rng.u64(1..500));
        let to = to(&words);
        let verb = if to.contains(' ') { "M" } else { "" };
        let line = format!("RLOCK.{verb}ACQUIRE {to} {hold} {lease}{options}");
        let (call, reply) = (now_us(), link.say(&line)?);
        let granted = match reply {
            Value::Int(token) => json!({"ok": {"token": token}}),
            Value::Null => json!({"error": "not_acquired"}),
            Value::Error(text) if text.starts_with("LOADING") => return Err(Error::other(text)),
            other => json!({"error": "other", "text": format!("{other:?}")}),
        };
        let got = granted.get("ok").is_some();
        self.write(("acquire", &hold), words.clone(), call, granted);
        if !got {
            return Ok(());
        }
        sleep(Duration::from_millis(self.rng.u64(0..20)));
        if self.rng.u32(0..16) == 0 {
            return Ok(()); // its lease is to end
        }
        let mode = words["mode"].as_str().unwrap_or_default().to_uppercase();
        let permits = &words["permits"];
        let what = match permits.as_u64() {
            Some(permits) => format!("PERMITS {permits}"),
            None => mode,
        };
        let line = format!("RLOCK.{verb}RELEASE {to} {hold} {what}");
        let (call, reply) = (now_us(), link.say(line.trim_end())?);
        let given = match reply {
            Value::Int(_) => json!({"ok": {}}),
            other => json!({"error": "lost", "text": format!("{other:?}")}),
        };
        self.write(("release", &hold), Json::Null, call, given);
        Ok(())
    }

    fn write(&self, (what, hold): (&str, &str), words: Json, call: u64, out: Json) {
        self.book.write(&Record::Ask(Ask {
            what: what.to_owned(),
            hold: hold.to_owned(),
            words,
            call,
            reply: Some(now_us()),
            out,
            ..Ask::default()
        }));
    }
}

fn to(words: &Json) -> String {
    match words["keys"].as_array() {
        Some(keys) => {
            let keys: Vec<&str> = keys.iter().filter_map(Json::as_str).collect();
            format!("{} {}", keys.len(), keys.join(" "))
        }
        None => words["key"].as_str().unwrap_or_default().to_owned(),
    }
}

fn options(words: &Json) -> String {
    let mode = words["mode"].as_str().unwrap_or_default().to_uppercase();
    match (words["limit"].as_u64(), words["permits"].as_u64()) {
        (Some(limit), Some(permits)) => format!(" LIMIT {limit} PERMITS {permits}"),
        _ if mode.is_empty() => mode,
        _ => format!(" {mode}"),
    }
}
