//! Who says that it is alive (HEARTBEAT), and for how long each may be silent.
//!
//! Silence is counted in a time of its own, [`ListenedUs`], that goes on only while the server
//! could hear its clients. It is made of *turns*, which the loop of what is due takes with the
//! gate open, ten a second or more. What passed between two of them counts; where that is more
//! than so much the server stood still, or could not write, and it counts as if it had been the
//! usual. Then a few turns have to come before anybody is taken for silent, so that what lay in
//! the sockets is read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::queue::Waiter;
use super::watchdog::{Bond, Watchdogs};
use super::{ClientId, ListenedUs, MonoUs, Now};

/// So often a turn comes, as a rule.
const TURN_US: i64 = 100_000;

/// and not sooner than this after the last, whoever is silent by then.
const LEAST_US: i64 = 5_000;

/// If none came for longer, the server stood still.
const STALL_US: i64 = 150_000;

/// Then so many come one soon after the other, each in a turn of the event loop of its own,
const TURNS_TO_READ: u8 = 4;
/// so far apart.
const READS_US: i64 = 25_000;

/// So many holds of those who are silent are looked at in a turn: the rest in the next.
const LOOKED_AT: usize = 512;

/// Of one connection.
#[derive(Clone, Copy, Debug)]
struct Session {
    patience_us: i64,
    /// It is silent from then on.
    until: ListenedUs,
}

/// A place in the order of those who are silent, the longest first.
type Silent = (ListenedUs, ClientId);

#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    sessions: BTreeMap<ClientId, Session>,
    ends: BTreeSet<Silent>,
    listened: ListenedUs,
    last_turn: MonoUs,
    /// So many turns are to come before anybody is taken for silent.
    to_read: u8,
    /// So many holds may be looked at yet in this turn,
    left: usize,
    /// of this one who is silent, behind this one of its holds.
    place: Option<(Silent, Option<Bond>)>,
}

impl Heartbeats {
    /// Nobody has ever said that it is alive.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    pub fn has(&self, client: ClientId) -> bool {
        self.sessions.contains_key(&client)
    }

    /// A connection was heard, and may be silent for so many ms from now on.
    pub fn heard(&mut self, client: ClientId, patience: i64, now: Now) {
        if self.is_empty() {
            // Before, nobody listened.
            (self.last_turn, self.to_read) = (now.mono, 0);
        }
        let passed = now.mono.since(self.last_turn).clamp(0, STALL_US);
        let patience_us = patience.saturating_mul(1000);
        self.set(client, patience_us, self.listened.plus_us(passed));
    }

    /// It may be silent for as long from this moment on.
    fn set(&mut self, client: ClientId, patience_us: i64, from: ListenedUs) {
        self.forget(client);
        let until = from.plus_us(patience_us);
        let session = Session { patience_us, until };
        self.sessions.insert(client, session);
        self.ends.insert((until, client));
    }

    /// A request has left its queues: of a client that was blocked the server could hear nothing
    /// until now.
    pub fn may_speak(&mut self, waiter: &Waiter) {
        if self.is_empty() {
            return;
        }
        if let Some(client) = waiter.blocked() {
            self.speaks_from_now(client);
        }
    }

    fn speaks_from_now(&mut self, client: ClientId) {
        if let Some(session) = self.sessions.get(&client).copied() {
            // By no clock: at the latest when the next turn comes.
            self.set(client, session.patience_us, self.listened.plus_us(STALL_US));
        }
    }

    /// It is closed.
    pub fn forget(&mut self, client: ClientId) {
        if let Some(session) = self.sessions.remove(&client) {
            let was = self.ends.remove(&(session.until, client));
            debug_assert!(was, "who may be silent may be so until a moment");
        }
    }

    /// Whether a connection was silent for too long when it was last looked.
    pub fn is_silent(&self, client: ClientId) -> bool {
        let session = self.sessions.get(&client);
        self.to_read == 0 && session.is_some_and(|session| session.until <= self.listened)
    }

    /// When the next turn is due.
    pub fn next(&self) -> Option<MonoUs> {
        if self.sessions.is_empty() {
            return None;
        }
        if self.left > 0 {
            return Some(self.last_turn);
        }
        let in_us = match self.to_read {
            0 => self.to_the_next_end().clamp(LEAST_US, TURN_US),
            _ => READS_US,
        };
        Some(self.last_turn.plus_us(in_us))
    }

    /// How long it is until somebody is silent who is not yet.
    fn to_the_next_end(&self) -> i64 {
        let behind = Bound::Excluded((self.listened, ClientId::LAST));
        let next = self.ends.range((behind, Bound::Unbounded)).next();
        next.map_or(i64::MAX, |(until, _)| until.since(self.listened))
    }

    /// The next holds of those who are silent, with whose each is: some at a time. A new turn begins
    /// where none is under way. `is_blocked`: of these the server can hear nothing.
    pub fn go_on(
        &mut self,
        watchdogs: &Watchdogs,
        now: Now,
        most: usize,
        is_blocked: impl Fn(ClientId) -> bool,
    ) -> Vec<(ClientId, Bond)> {
        if self.left == 0 && !self.begin_turn(now.mono) {
            return Vec::new();
        }
        let mut found = Vec::new();
        while self.left > 0 && found.len() < most {
            self.left = self.left.saturating_sub(1);
            let Some((silent, behind)) = self.next_place() else {
                self.left = 0;
                break;
            };
            let (_, client) = silent;
            let blocked = is_blocked(client);
            let bond = watchdogs.next_of(client, behind).filter(|_| !blocked);
            let bond = bond.cloned();
            self.place = match &bond {
                Some(_) => Some((silent, bond.clone())),
                None => self.silent_behind(silent).map(|next| (next, None)),
            };
            if self.place.is_none() {
                self.left = 0;
            }
            if blocked {
                self.speaks_from_now(client);
            }
            found.extend(bond.map(|bond| (client, bond)));
        }
        found
    }

    /// The server comes to listen. Whether it may be looked who is silent.
    fn begin_turn(&mut self, now: MonoUs) -> bool {
        let passed = now.since(self.last_turn).max(0);
        self.last_turn = now;
        let stood_still = passed > STALL_US;
        let counted = if stood_still { TURN_US } else { passed };
        self.listened = self.listened.plus_us(counted);
        self.to_read = match self.to_read {
            0 if stood_still => TURNS_TO_READ,
            left => left.saturating_sub(1),
        };
        let looks = self.to_read == 0;
        self.left = if looks { LOOKED_AT } else { 0 };
        looks
    }

    /// Where to go on: who is there no more, or speaks, is passed over.
    fn next_place(&mut self) -> Option<(Silent, Option<Bond>)> {
        let Some((silent, behind)) = self.place.take() else {
            return self.first_silent().map(|first| (first, None));
        };
        if self.ends.contains(&silent) {
            return Some((silent, behind));
        }
        self.silent_behind(silent).map(|next| (next, None))
    }

    fn first_silent(&self) -> Option<Silent> {
        self.ends
            .first()
            .copied()
            .filter(|(until, _)| *until <= self.listened)
    }

    fn silent_behind(&self, silent: Silent) -> Option<Silent> {
        let later = (Bound::Excluded(silent), Bound::Unbounded);
        let next = self.ends.range(later).next().copied();
        next.filter(|(until, _)| *until <= self.listened)
    }

    #[cfg(test)]
    pub fn until(&self, client: ClientId) -> Option<ListenedUs> {
        self.sessions.get(&client).map(|session| session.until)
    }

    #[cfg(test)]
    pub fn listened(&self) -> ListenedUs {
        self.listened
    }

    /// Asserts that the index is that of the sessions.
    #[cfg(test)]
    pub fn check(&self) {
        let all = self.sessions.iter();
        let ends: BTreeSet<Silent> = all.map(|(client, its)| (its.until, *client)).collect();
        assert_eq!(self.ends, ends);
    }
}
