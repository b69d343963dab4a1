//! Locks, holders and waiters as the server describes them.

use redis::{Cmd, cmd};
use rlock_client::library::Speech;
use serde_json::{Value as Json, json};

use crate::exit::Failure;
use crate::server::{Fields, Server, words};

/// `RLOCK.INFO`.
pub struct Lock {
    pub mode: String,
    pub limit: Option<u64>,
    pub available: Option<u64>,
    pub holders: Vec<Holder>,
    pub waiters: u64,
    pub oldest_wait_ms: Option<u64>,
}

#[derive(Clone)]
pub struct Holder {
    pub key: String,
    pub owner: String,
    pub mode: String,
    /// Holds, or permits.
    pub holds: u64,
    pub remaining_ms: Option<u64>,
    pub held_ms: Option<u64>,
    pub token: Option<u64>,
    pub watchdog: Option<u64>,
}

pub struct Waiter {
    pub owner: String,
    pub mode: String,
    pub waited_ms: u64,
    pub client: Option<u64>,
    pub permits: Option<u64>,
}

pub fn info(speech: &Speech, key: &str) -> Cmd {
    speech.call("info", &[key.to_owned()], &[])
}

pub fn waiters(key: &str) -> Cmd {
    cmd("RLOCK.WAITERS").arg(key).clone()
}

impl Lock {
    pub fn of(value: redis::Value) -> Self {
        let mut fields = Fields::of(value);
        let holders = Fields::each(fields.take("holders"));
        Self {
            mode: fields.text("mode"),
            limit: fields.number("limit"),
            available: fields.number("available"),
            holders: holders.iter().map(Holder::of).collect(),
            waiters: fields.number("waiters").unwrap_or(0),
            oldest_wait_ms: fields.number("oldest-wait-ms"),
        }
    }

    pub fn ask(server: &mut Server, key: &str) -> Result<Self, Failure> {
        let speech = server.speech()?;
        Ok(Self::of(server.ask(&info(&speech, key))?))
    }

    pub fn json(&self, key: &str) -> Json {
        let holders: Vec<Json> = self.holders.iter().map(Holder::json).collect();
        json!({
            "key": key, "mode": self.mode, "limit": self.limit, "available": self.available,
            "holders": holders, "waiters": self.waiters, "oldest_wait_ms": self.oldest_wait_ms,
        })
    }
}

impl Holder {
    pub fn of(fields: &Fields) -> Self {
        let holds = fields.number("holds").or(fields.number("permits"));
        Self {
            key: fields.text("key"),
            owner: fields.text("owner"),
            mode: fields.text("mode"),
            holds: holds.unwrap_or(1),
            remaining_ms: fields.number("remaining-ms"),
            held_ms: fields.number("held-ms"),
            token: fields.number("token"),
            watchdog: fields.number("watchdog"),
        }
    }

    pub fn json(&self) -> Json {
        let holds = if self.mode == "permits" {
            "permits"
        } else {
            "holds"
        };
        let mut json = json!({
            "owner": self.owner, "mode": self.mode, holds: self.holds, "held_ms": self.held_ms,
            "remaining_ms": self.remaining_ms, "token": self.token, "watchdog": self.watchdog,
        });
        if !self.key.is_empty() {
            json["key"] = self.key.as_str().into();
        }
        json
    }
}

impl Waiter {
    fn of(fields: &Fields) -> Self {
        Self {
            owner: fields.text("owner"),
            mode: fields.text("mode"),
            waited_ms: fields.number("waited-ms").unwrap_or(0),
            client: fields.number("client-id"),
            permits: fields.number("permits"),
        }
    }

    pub fn all_of(value: redis::Value) -> Vec<Self> {
        Fields::each(value).iter().map(Self::of).collect()
    }

    pub fn ask(server: &mut Server, key: &str) -> Result<Vec<Self>, Failure> {
        Ok(Self::all_of(server.ask(&waiters(key))?))
    }

    pub fn json(&self) -> Json {
        json!({
            "owner": self.owner, "mode": self.mode, "waited_ms": self.waited_ms,
            "client_id": self.client, "permits": self.permits,
        })
    }
}

/// A page of `RLOCK.LIST`: the cursor of the next, and the holders.
pub fn page(value: redis::Value) -> (String, Vec<Holder>) {
    let redis::Value::Array(parts) = value else {
        return ("0".into(), Vec::new());
    };
    let mut parts = parts.into_iter();
    let cursor = parts
        .next()
        .map_or_else(|| "0".into(), |cursor| words(&cursor));
    let holders = Fields::each(parts.next().unwrap_or(redis::Value::Nil));
    (cursor, holders.iter().map(Holder::of).collect())
}

/// `host:pid` of `host:pid:uuid`: the rest means nothing to a person.
pub fn short(owner: &str) -> String {
    let clean: String = owner
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    match clean.rsplit_once(':') {
        Some((before, uuid)) if uuid.len() == 36 && uuid.matches('-').count() == 4 => before.into(),
        _ => clean,
    }
}
