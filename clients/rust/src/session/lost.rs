//! What is lost, and what happens between two connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::RedisError;

use crate::clock::Time;
use crate::error::{Error, Reason};
use crate::request::Request;

use super::actor::{Actor, Owed};
use super::entry::Phase;
use super::link::Link;

impl Actor {
    /// The hold is lost, as the server has said or this process has seen.
    pub fn lose(&mut self, id: u64, reason: Reason) {
        let Some(entry) = self.remove(id) else { return };
        match entry.phase {
            Phase::Held(held) => {
                if let Some(place) = &entry.request.place {
                    place.leave();
                }
                held.state.lose(reason);
                // The others of several keys, which nobody counts on any more; and what a
                // successor of this master may know of.
                if entry.request.keys.len() > 1 || reason == Reason::Demoted {
                    self.owe(id, entry.request, false);
                }
            }
            // Its release is under way, and will find nothing.
            phase => {
                _ = self
                    .entries
                    .insert(id, super::entry::Entry { phase, ..entry })
            }
        }
    }

    pub fn entry_due(&mut self, id: u64, now: Time) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        if entry.due(self.timeout).is_none_or(|at| at > now) {
            return self.look_again(id);
        }
        match &entry.phase {
            Phase::Asked(asked) => {
                let error = self.link.is_none().then_some(&*self.last_error);
                let error = asked.too_late(error);
                let (request, was_sent) = (Arc::clone(&entry.request), asked.was_sent);
                self.fail(id, error);
                if was_sent {
                    self.owe(id, request, true);
                }
            }
            Phase::Held(held) if held.until.is_some_and(|until| until <= now) => {
                let request = Arc::clone(&entry.request);
                self.lose(id, Reason::Max);
                self.owe(id, request, false);
            }
            Phase::Held(_) => self.lose(id, Reason::Lease),
            Phase::Released(_) => {}
        }
    }

    /// Every hold with WATCHDOG is lost. Waits and plain holds go on by the next connection.
    pub fn disconnected(&mut self, why: &str) {
        if self.link.take().is_none() {
            return;
        }
        self.is_connected.store(false, Ordering::Relaxed);
        self.last_error = why.into();
        self.by_tag.clear();
        for owed in self.owed.values_mut() {
            owed.sent = false;
        }
        let ids: Vec<u64> = self.entries.keys().copied().collect();
        for id in ids {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            entry.tag = 0;
            let request = Arc::clone(&entry.request);
            match &mut entry.phase {
                Phase::Asked(asked) if asked.to.is_closed() => self.cancel(id),
                Phase::Asked(asked) => asked.forget(),
                Phase::Held(_) if request.watchdog => {
                    self.lose(id, Reason::Connection);
                    self.owe(id, request, false);
                }
                Phase::Held(_) => {}
                Phase::Released(to) => {
                    let to = to.take();
                    self.remove(id);
                    self.owe(id, request, false);
                    _ = to.map(|to| to.send(Ok(())));
                }
            }
        }
        self.connect_later();
    }

    pub fn not_connected(&mut self, error: &RedisError) {
        self.last_error = error.to_string();
        self.connect_later();
        let failed = Error::from_redis(error);
        let for_good = match &failed {
            Error::Refused { code, .. } => !failed.is_no_master() && code != "ERR",
            _ => error.kind() == redis::ErrorKind::AuthenticationFailed,
        };
        if for_good {
            // No use in trying: a password, a permission.
            let ids: Vec<u64> = self.entries.keys().copied().collect();
            for id in ids {
                self.fail(id, failed.clone());
            }
        }
    }

    /// First what is owed to the server, then the waits that go on.
    pub fn connected(&mut self, link: Link) {
        self.start_beat(link.since);
        self.link = Some(link);
        self.is_connected.store(true, Ordering::Relaxed);
        self.pay();
        let asked = |(id, entry): (&u64, &super::entry::Entry)| match &entry.phase {
            Phase::Asked(asked) => Some((asked.since, *id)),
            _ => None,
        };
        let mut asked: Vec<_> = self.entries.iter().filter_map(asked).collect();
        asked.sort_unstable();
        for (_, id) in asked {
            self.ask(id);
        }
    }

    /// With the next heartbeat.
    pub fn owe_later(&mut self, id: u64, request: Arc<Request>) {
        let owed = Owed {
            request,
            waits: false,
            sent: false,
        };
        self.owed.insert(id, owed);
    }
}
