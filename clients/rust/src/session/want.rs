//! Whether somebody waits for a hold. The server is asked to say so (WANTED) from the first time on that
//! the program wants to know. It is a hint: no hold depends on it.

use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;

use crate::clock;
use crate::error::Error;
use crate::request::Request;

use super::actor::{Actor, What};
use super::direct::Sent;
use super::entry::{Held, Phase};
use super::link::Link;

/// What the server does not do now it is asked for again after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// What a RENEW says to have a hold notified of on this connection.
pub(super) fn notify(renew: &mut Cmd, request: &Request, held: &mut Held, link: &Link, tag: u64) {
    renew.arg("NOTIFY").arg(&link.channel).arg(tag);
    renew.arg(keeps(request).then_some("WATCHDOG"));
    if is_heard(request, held, link) {
        renew.arg("WANTED");
        held.asked_on = link.number;
    }
}

/// Whether the module's RENEW gives its hold a watchdog; MRENEW gives none.
pub(super) fn keeps(request: &Request) -> bool {
    request.watchdog && request.keys.len() == 1
}

/// MRENEW does not have the word.
fn is_heard(request: &Request, held: &Held, link: &Link) -> bool {
    held.state.is_asked() && link.hears_wanted && request.keys.len() == 1
}

impl Actor {
    /// Once on each connection, by the tag and the lease that the hold has. While a renewal of the program's is
    /// under way nobody knows what lease that is: it is asked behind that.
    pub fn want(&mut self, id: u64) {
        if let Some(sent) = self.ask_whether_wanted(id) {
            self.follow(sent);
        }
    }

    fn ask_whether_wanted(&mut self, id: u64) -> Option<Sent> {
        let entry = self.entries.get_mut(&id)?;
        let Phase::Held(held) = &mut entry.phase else {
            return None;
        };
        let link = self.nodes.get(entry.node)?.link.as_ref()?;
        let is_settled = held.renewals == 0 && entry.tag != 0;
        if !is_settled || held.asked_on == link.number || !is_heard(&entry.request, held, link) {
            return None;
        }
        let lease = match held.state.deadline() {
            Some(deadline) if !entry.request.watchdog => deadline.checked_sub(clock::now())?,
            _ => held.lease,
        };
        let mut renew = entry.request.renew(&link.speech, lease, None);
        notify(&mut renew, &entry.request, held, link, entry.tag);
        Some(link.send(entry.node, What::Want { id }, renew))
    }

    pub fn want_answered(&mut self, id: u64, error: Option<Error>) {
        match error {
            None => {}
            Some(Error::Lost(reason)) => self.lose(id, reason),
            Some(error) if self.refuses_wanted(id, &error) => {}
            Some(_) => {
                if let Some(held) = self.held_mut(id) {
                    (held.asked_on, held.ask_at) = (0, Some(clock::now() + AGAIN));
                }
                self.look_again(id);
            }
        }
    }

    /// Whether it is the word that a RENEW (or ACQUIRE) was refused for: the server is too old, or does not let this user
    /// say it. On this connection it is not said any more.
    pub fn refuses_wanted(&mut self, id: u64, error: &Error) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return false;
        };
        let link = self.nodes.get_mut(entry.node);
        let link = link.and_then(|node| node.link.as_mut());
        let asked_on = match &mut entry.phase {
            Phase::Held(held) => &mut held.asked_on,
            Phase::Asked(asked) => &mut asked.asked_on,
            Phase::Released(_) => return false,
        };
        let Some(link) = link.filter(|link| link.number == *asked_on) else {
            return false;
        };
        let is_refused = error.says("syntax error") || error.is_denied();
        if is_refused {
            link.hears_wanted = false;
            *asked_on = 0;
        }
        is_refused
    }

    /// The server did not do it, or refused the word to what was to be regained.
    pub fn ask_whether_wanted_again(&mut self, id: u64) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let Phase::Held(held) = &mut entry.phase else {
            return;
        };
        let is_settled = held.renewals == 0;
        held.ask_at = (!is_settled).then(|| clock::now() + AGAIN);
        match entry.tag {
            _ if !is_settled => {}
            0 => self.regain(id),
            _ => self.want(id),
        }
        self.look_again(id);
    }

    /// By the server's message.
    pub fn notified_wanted(&mut self, id: u64) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let (state, lease) = match &entry.phase {
            Phase::Held(held) => (&held.state, held.lease),
            // Ahead of the reply, or of what is to be made sure of.
            Phase::Asked(asked) => match asked.hint() {
                Some(state) => (state, entry.request.lease),
                None => return,
            },
            Phase::Released(_) => return,
        };
        state.set_wanted(clock::now() + lease / 2);
        let state = Arc::clone(state);
        let stay = match &entry.phase {
            Phase::Held(held) => held.stay,
            _ => None,
        };
        self.notify(state);
        if let Some(stay) = stay {
            self.look_at_stay(stay);
        }
    }

    pub fn held_mut(&mut self, id: u64) -> Option<&mut Held> {
        match &mut self.entries.get_mut(&id)?.phase {
            Phase::Held(held) => Some(held),
            _ => None,
        }
    }
}
