//! A hold with a deadline outlives its connection. On the next one it is asked for.

use std::time::Duration;

use redis::Value;

use crate::clock::{self, Time};
use crate::error::Error;

use super::actor::{Actor, What};
use super::direct::Sent;
use super::entry::{Phase, Released};
use super::want::{keeps, notify};

impl Actor {
    /// Asks whether it is held still, and says where its loss is notified from now on. The deadline
    /// of a plain one stays. One with watchdog is renewed: here, or from now on by the server.
    pub fn regain(&mut self, id: u64) {
        if let Some(sent) = self.ask_whether_held(id) {
            self.follow(sent);
        }
    }

    fn ask_whether_held(&mut self, id: u64) -> Option<Sent> {
        let entry = self.entries.get_mut(&id)?;
        let Phase::Held(held) = &mut entry.phase else {
            return None;
        };
        let node = self.nodes.get_mut(entry.node)?;
        let Some(link) = &node.link else {
            node.wanted = true;
            return None;
        };
        let sent = clock::now();
        let left = held.state.deadline()?.checked_sub(sent)?;
        let speech = &link.speech;
        self.last_tag += 1;
        entry.tag = self.last_tag;
        entry.regains = true;
        held.regained = true;
        self.by_tag.insert(entry.tag, id);
        let mut lease = left;
        if entry.request.watchdog {
            lease = held.lease;
            held.renew_at = Some(sent + lease / 3);
        }
        let mut renew = entry.request.renew(speech, lease, None);
        if speech.has_module() {
            notify(&mut renew, &entry.request, held, link, entry.tag);
        }
        Some(link.send(entry.node, What::Regain { id, lease, sent }, renew))
    }

    /// It is held still, or lost.
    pub fn regained(&mut self, id: u64, lease: Duration, sent: Time, reply: Result<Value, Error>) {
        let says_less = reply
            .as_ref()
            .is_err_and(|error| self.refuses_wanted(id, error));
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        entry.regains = false;
        if says_less {
            self.by_tag.remove(&entry.tag);
            entry.tag = 0;
            return self.ask_whether_wanted_again(id);
        }
        let link = self.nodes.get(entry.node).and_then(|n| n.link.as_ref());
        let has_module = link.is_some_and(|link| link.speech.has_module());
        match (&mut entry.phase, reply.err()) {
            (Phase::Held(held), None) if entry.request.watchdog => {
                held.keep(sent, lease);
                if has_module && keeps(&entry.request) && held.state.reason().is_none() {
                    // The server's watchdog has it.
                    held.state.set_deadline(None);
                    held.renew_at = None;
                }
                self.look_again(id);
            }
            (Phase::Held(_), Some(Error::Lost(reason))) => self.lose(id, reason),
            // Which node has it now is found out; that one is asked.
            (Phase::Held(_), Some(error)) if error.is_elsewhere() => {
                self.by_tag.remove(&entry.tag);
                entry.tag = 0;
                self.read_slots();
            }
            (Phase::Released(released), Some(error @ Error::Lost(_))) => {
                let was = released.end.replace(Err(error));
                if was.is_some() {
                    self.released(id);
                }
            }
            (Phase::Released(Released { end: Some(_), .. }), _) => self.released(id),
            _ => {}
        }
    }
}
