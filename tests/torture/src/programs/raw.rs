//! Those who ask the server without a client: for the same locks, over connections that nothing
//! is done to, with plain leases. By the module's commands, or by the library.

use std::io::{self, Error};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::saw::{Ask, Record};
use serde_json::{json, Value as Json};

use crate::book::Book;
use crate::library::Library;
use crate::link::Link;
use crate::locks;
use crate::resp::Value;

/// How it asks.
pub enum Way {
    Commands,
    Library(Library),
}

pub struct Raw {
    pub number: usize,
    /// As the history calls those of its way.
    pub driver: usize,
    pub way: Way,
    pub server: u16,
    pub rng: Rng,
    pub book: Arc<Book>,
    pub stop: Arc<AtomicBool>,
}

/// What one of them asks for.
struct Wanted {
    keys: Vec<String>,
    hold: String,
    lease: String,
    /// `READ`, or `LIMIT 3 PERMITS 2`, or nothing.
    options: Vec<String>,
    /// What names such a hold at its release.
    kind: Vec<String>,
}

impl Wanted {
    fn of(words: &Json, hold: &str) -> Self {
        let mode = words["mode"].as_str().map(str::to_uppercase);
        let permits = words["permits"].as_u64();
        let kind = match (mode, permits) {
            (Some(mode), _) => vec![mode],
            (_, Some(permits)) => vec!["PERMITS".to_owned(), permits.to_string()],
            _ => Vec::new(),
        };
        let limit = words["limit"].as_u64();
        let limit = limit.map(|limit| ["LIMIT".to_owned(), limit.to_string()]);
        let options = limit.into_iter().flatten().chain(kind.clone());
        Self {
            keys: keys(words),
            hold: hold.to_owned(),
            lease: words["lease"].to_string(),
            options: options.collect(),
            kind,
        }
    }

    fn verb(&self, verb: &str) -> String {
        let many = if self.keys.len() > 1 { "m" } else { "" };
        format!("{many}{verb}")
    }

    fn command(&self, verb: &str, rest: &[&str]) -> Vec<String> {
        let mut words = vec![format!("RLOCK.{}", self.verb(verb).to_uppercase())];
        if self.keys.len() > 1 {
            words.push(self.keys.len().to_string());
        }
        words.extend(self.keys.iter().cloned());
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        words
    }
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
        let hold = format!("{}.{}.{count}", self.driver, self.number);
        let mut words = locks::draw(&mut self.rng);
        words["lease"] = self.rng.u64(200..1500).into();
        words["watchdog"] = false.into();
        let wanted = Wanted::of(&words, &hold);
        let wait = Duration::from_millis(self.rng.u64(1..500));
        let (call, reply) = match self.way {
            Way::Commands => self.by_blocking(link, &wanted, wait)?,
            Way::Library(_) => self.by_trying(link, &wanted, wait)?,
        };
        let granted = match reply {
            Value::Int(token) => json!({"ok": {"token": token}}),
            Value::Null | Value::Array(_) => json!({"error": "not_acquired"}),
            Value::Error(text) if text.starts_with("LOADING") => return Err(Error::other(text)),
            other => json!({"error": "other", "text": format!("{other:?}")}),
        };
        let got = granted.get("ok").is_some();
        self.write(("acquire", &hold), words, call, granted);
        if !got {
            return Ok(());
        }
        sleep(Duration::from_millis(self.rng.u64(0..20)));
        if self.rng.u32(0..16) == 0 {
            return Ok(()); // its lease is to end
        }
        let kind: Vec<&str> = wanted.kind.iter().map(String::as_str).collect();
        let rest = [&[wanted.hold.as_str()], &kind[..]].concat();
        let call = now_us();
        let reply = self.say(link, &wanted, "release", &rest);
        let given = match &reply {
            Ok(Value::Int(_)) => json!({"ok": {}}),
            Ok(other) => json!({"error": "lost", "text": format!("{other:?}")}),
            // It may have been carried out.
            Err(error) => json!({"error": "connection", "text": error.to_string()}),
        };
        self.write(("release", &hold), Json::Null, call, given);
        reply.map(drop)
    }

    fn by_blocking(
        &mut self,
        link: &mut Link,
        wanted: &Wanted,
        wait: Duration,
    ) -> io::Result<(u64, Value)> {
        let wait = wait.as_millis().to_string();
        let options = wanted.options.iter().map(String::as_str);
        let mut rest = vec![wanted.hold.as_str(), &wanted.lease];
        rest.extend(options);
        rest.extend(["BLOCK", &wait]);
        let call = now_us();
        Ok((call, self.say(link, wanted, "acquire", &rest)?))
    }

    /// Tries again and again: with a place in the queue, or as somebody who knows of none.
    fn by_trying(
        &mut self,
        link: &mut Link,
        wanted: &Wanted,
        wait: Duration,
    ) -> io::Result<(u64, Value)> {
        let end = Instant::now() + wait;
        let options = wanted.options.iter().map(String::as_str);
        let mut rest = vec![wanted.hold.as_str(), &wanted.lease];
        rest.extend(options);
        let place = format!("place-{}", wanted.hold);
        let ms = ["", "0", "1000"][self.rng.usize(0..3)];
        if !ms.is_empty() {
            rest.extend(["PLACE", &place, ms]);
        }
        loop {
            let call = now_us();
            let reply = self.say(link, wanted, "acquire", &rest)?;
            if !matches!(reply, Value::Null | Value::Array(_)) {
                return Ok((call, reply));
            }
            if Instant::now() >= end {
                // Some go without a word: their place is to end by itself.
                if ms == "1000" && wanted.keys.len() == 1 && self.rng.u32(0..8) > 0 {
                    let rest = [&wanted.hold, "PLACE", &place];
                    self.say(link, wanted, "cancel", &rest)?;
                }
                return Ok((call, reply));
            }
            sleep(Duration::from_millis(self.rng.u64(1..20)));
        }
    }

    fn say(
        &mut self,
        link: &mut Link,
        wanted: &Wanted,
        verb: &str,
        rest: &[&str],
    ) -> io::Result<Value> {
        match &mut self.way {
            Way::Commands => link.call(&wanted.command(verb, rest)),
            Way::Library(library) => {
                let keys: Vec<&str> = wanted.keys.iter().map(String::as_str).collect();
                let name = format!("rlock1_{}", wanted.verb(verb));
                library.call(link, &name, (&keys, self.rng.bool()), rest)
            }
        }
    }

    fn write(&self, (what, hold): (&str, &str), words: Json, call: u64, out: Json) {
        self.book.write(&Record::Ask(Ask {
            driver: self.driver,
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

fn keys(words: &Json) -> Vec<String> {
    let one = words["key"].as_str();
    let several = words["keys"].as_array().into_iter().flatten();
    let all = one.into_iter().chain(several.filter_map(Json::as_str));
    all.map(str::to_owned).collect()
}
