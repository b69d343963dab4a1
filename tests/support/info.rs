//! What the server shows of its locks: RLOCK.INFO, and the section `rlock` of INFO.

use std::collections::BTreeMap;

use redis::Value;

use super::reply::{int, int_or_none, list, map, text};
use super::{eventually, poll, Ask, RawClient, BOUND};

/// A reply of RLOCK.INFO.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    pub mode: String,
    pub holders: Vec<Hold>,
    pub waiters: i64,
    pub oldest_wait_ms: Option<i64>,
}

/// One entry under `holders`.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    pub owner: String,
    pub mode: String,
    /// Or its permits.
    pub holds: i64,
    pub remaining_ms: Option<i64>,
    pub held_ms: Option<i64>,
    pub token: Option<i64>,
    /// The connection whose end ends the hold.
    pub watchdog: Option<i64>,
    /// For how long somebody has waited whom it keeps out, if it asked to know.
    pub wanted_ms: Option<i64>,
}

impl Info {
    #[track_caller]
    pub fn of(reply: Value) -> Self {
        let fields = map(reply);
        let holders = list(fields["holders"].clone());
        Self {
            mode: text(fields["mode"].clone()),
            holders: holders.into_iter().map(Hold::of).collect(),
            waiters: int(fields["waiters"].clone()),
            oldest_wait_ms: int_or_none(fields["oldest-wait-ms"].clone()),
        }
    }

    /// Who holds the lock, in what mode and how often, as one would write it, by owner:
    /// `a read 2, b read 1`. Of one owner in the order of the reply.
    pub fn held_by(&self) -> String {
        let mut holds: Vec<&Hold> = self.holders.iter().collect();
        holds.sort_by(|x, y| x.owner.cmp(&y.owner));
        let holds: Vec<_> = holds
            .iter()
            .map(|hold| format!("{} {} {}", hold.owner, hold.mode, hold.holds))
            .collect();
        holds.join(", ")
    }

    /// Of each holder: the owner, how often it holds the lock, and the token.
    pub fn holds(&self) -> Vec<(&str, i64, Option<i64>)> {
        let holds = self.holders.iter();
        holds
            .map(|hold| (hold.owner.as_str(), hold.holds, hold.token))
            .collect()
    }

    /// The only entry of a lock that is held.
    #[track_caller]
    pub fn only(mut self) -> Hold {
        assert_eq!(self.holders.len(), 1, "{self:?}");
        self.holders.remove(0)
    }
}

impl Hold {
    #[track_caller]
    fn of(entry: Value) -> Self {
        let fields = map(entry);
        let number = |name: &str| int_or_none(fields[name].clone());
        let of_what = match fields.contains_key("permits") {
            true => "permits",
            false => "holds",
        };
        Self {
            owner: text(fields["owner"].clone()),
            mode: text(fields["mode"].clone()),
            holds: int(fields[of_what].clone()),
            remaining_ms: number("remaining-ms"),
            held_ms: number("held-ms"),
            token: number("token"),
            watchdog: number("watchdog"),
            wanted_ms: number("wanted-ms"),
        }
    }
}

impl RawClient {
    #[track_caller]
    pub fn info(&mut self, key: &str) -> Info {
        Info::of(self.ask(&["RLOCK.INFO", key]))
    }

    #[track_caller]
    pub fn mode(&mut self, key: &str) -> String {
        self.info(key).mode
    }

    #[track_caller]
    pub fn waiters(&mut self, key: &str) -> i64 {
        self.info(key).waiters
    }

    #[track_caller]
    pub fn held_by(&mut self, key: &str) -> String {
        self.info(key).held_by()
    }

    /// The only entry of a lock that is held.
    #[track_caller]
    pub fn only(&mut self, key: &str) -> Hold {
        // A look right after a stall of the machine can come before the server has
        // renewed what it keeps.
        let held = poll(BOUND, || {
            Some(self.info(key)).filter(|info| !info.holders.is_empty())
        });
        held.unwrap_or_else(|| self.info(key)).only()
    }

    /// The connection that the only entry is bound to.
    #[track_caller]
    pub fn watchdog(&mut self, key: &str) -> Option<i64> {
        self.only(key).watchdog
    }

    /// The token that is shown for an owner in a mode.
    #[track_caller]
    pub fn known_token(&mut self, key: &str, owner: &str, mode: &str) -> Option<i64> {
        let holders = self.info(key).holders;
        let mut of = holders
            .iter()
            .filter(|hold| (hold.owner.as_str(), hold.mode.as_str()) == (owner, mode));
        of.next().expect("a holder").token
    }

    /// The numbers of the section `rlock` of INFO.
    #[track_caller]
    pub fn counters(&mut self) -> BTreeMap<String, i64> {
        let section = self.text("INFO rlock");
        let fields = section.lines().filter_map(|line| line.split_once(':'));
        fields
            .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
            .collect()
    }

    #[track_caller]
    pub fn counter(&mut self, name: &str) -> i64 {
        match self.counters().get(name) {
            Some(value) => *value,
            None => panic!("INFO rlock tells no {name}"),
        }
    }

    /// Waits until so many requests stand in the queue.
    #[track_caller]
    pub fn has_waiters(&mut self, key: &str, count: i64) {
        eventually(&format!("{count} wait for {key}"), || {
            self.waiters(key) == count
        });
    }

    /// Waits until the lock is held like this, written as `held_by` does.
    #[track_caller]
    pub fn goes_to(&mut self, key: &str, held: &str) {
        eventually(&format!("{key} is held by {held}"), || {
            self.held_by(key) == held
        });
    }

    /// Waits until nobody holds the lock, and its key does not exist.
    #[track_caller]
    pub fn goes_free(&mut self, key: &str) {
        eventually(&format!("{key} is free"), || {
            self.mode(key) == "free" && self.int(&["EXISTS", key]) == 0
        });
    }

    /// A free lock without a queue.
    #[track_caller]
    pub fn is_free(&mut self, key: &str) {
        let found = self.info(key);
        assert_eq!((found.mode.as_str(), found.waiters), ("free", 0));
        assert_eq!(self.int(&["EXISTS", key]), 0);
    }

    /// A free lock without a queue, and nothing is left of any other.
    #[track_caller]
    pub fn nothing_left(&mut self, key: &str) {
        self.is_free(key);
        assert_eq!(self.int("DBSIZE"), 0, "{:?}", self.texts("KEYS *"));
    }

    /// The key is kept free for somebody who waits for it.
    #[track_caller]
    pub fn is_reserved(&mut self, key: &str) {
        assert_eq!(self.mode(key), "reserved", "{key}");
        assert_eq!(self.int(&["EXISTS", key]), 0, "{key}");
    }
}
