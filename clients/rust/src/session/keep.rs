//! Holds with watchdog at a server without the module: this session renews them.

use std::time::Duration;

use redis::Value;

use crate::clock::{self, Time};
use crate::error::Error;

use super::actor::{Actor, What};
use super::entry::{Entry, Held, Phase};

impl Held {
    /// It is renewed by this session from now on, or was renewed.
    pub fn keep(&mut self, sent: Time, lease: Duration) {
        // Once its deadline has passed it is lost.
        if self.state.reason().is_none() {
            self.state.set_deadline(Some(sent + lease));
            self.renew_at = Some(sent + lease / 3);
        }
    }
}

impl Actor {
    /// Renews all holds at this node whose time has come, in one go.
    pub fn keep(&mut self, number: usize, now: Time) {
        let is_due = |entry: &Entry| match &entry.phase {
            Phase::Held(held) if entry.node == number => {
                // Those that come soon come along.
                held.renew_at.is_some_and(|at| at <= now + held.lease / 12)
            }
            _ => false,
        };
        let due = self.entries.iter().filter(|(_, entry)| is_due(entry));
        let due: Vec<u64> = due.map(|(&id, _)| id).collect();
        for id in due {
            let link = self.nodes.get(number).and_then(|node| node.link.as_ref());
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            let Phase::Held(held) = &mut entry.phase else {
                continue;
            };
            let lease = held.lease;
            // Without a connection it is asked for by the next.
            held.renew_at = link.map(|_| now + lease / 3);
            let sent = link.map(|link| {
                let renew = entry.request.renew(&link.speech, lease, None);
                let sent = now;
                link.send(number, What::Keep { id, lease, sent }, renew)
            });
            sent.into_iter().for_each(|sent| self.follow(sent));
            self.look_again(id);
        }
    }

    pub fn kept(&mut self, id: u64, lease: Duration, sent: Time, reply: Result<Value, Error>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let Phase::Held(held) = &mut entry.phase else {
            return;
        };
        match reply {
            Ok(_) => held.keep(sent, lease),
            Err(Error::Lost(reason)) => return self.lose(id, reason),
            Err(error) if error.is_elsewhere() => {
                self.by_tag.remove(&entry.tag);
                entry.tag = 0;
                self.read_slots();
            }
            // It may pass before the deadline.
            Err(_) => held.renew_at = Some(clock::now() + lease / 9),
        }
        self.look_again(id);
    }
}
