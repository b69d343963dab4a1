//! What is lost, and what happens between two connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::slots::tag_in;

use super::actor::{Actor, What};
use super::direct::Way;
use super::entry::{Entry, Phase};
use super::link::Link;
use super::node::{NOWHERE, Node};

impl Actor {
    /// By the server's message.
    pub fn notified_lost(&mut self, id: u64, node: usize, reason: Reason) {
        match self.entries.get_mut(&id).map(|entry| &mut entry.phase) {
            Some(Phase::Asked(asked)) => {
                asked.lost = Some(reason);
                if asked.token.is_some() {
                    self.refuse_grant(id, Error::Lost(reason));
                }
            }
            // Else it is this release that the server notifies.
            Some(Phase::Released(released)) if reason != Reason::Released => {
                released.lost.get_or_insert(reason);
            }
            Some(Phase::Held(_)) => self.lose(id, reason),
            _ => {}
        }
        if reason == Reason::Demoted {
            self.disconnected(node, "the server became a replica");
        }
    }

    /// The hold is lost, as the server has said or this process has seen.
    pub fn lose(&mut self, id: u64, reason: Reason) {
        // If its release is under way, that will find nothing.
        let is_held = |entry: &Entry| matches!(entry.phase, Phase::Held(_));
        if !self.entries.get(&id).is_some_and(is_held) {
            return;
        }
        let Some(entry) = self.remove(id) else { return };
        let Phase::Held(held) = entry.phase else {
            return;
        };
        if let Some(place) = &entry.request.place {
            place.leave();
        }
        self.notify_lost(held.state, reason);
        let stay = held.stay;
        let is_known = match reason {
            // What a successor of this master may know of.
            Reason::Demoted | Reason::Moved => true,
            // A RENEW may have been answered too late. A quorum asks the server again, by the same
            // owner, and has to know that no RELEASE was sent.
            Reason::Lease => !entry.request.in_quorum,
            // The others of several keys, which nobody counts on any more.
            _ => entry.request.keys.len() > 1,
        };
        if is_known {
            // What moved is held at the other node.
            let node = match reason {
                Reason::Moved => NOWHERE,
                _ => entry.node,
            };
            self.end_at_server(id, entry.request, node, false);
        }
        if let Some(stay) = stay {
            self.lost_by_stay(stay, id, reason);
        }
    }

    pub fn entry_due(&mut self, id: u64, now: Time) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return self.stay_is_due(id, now);
        };
        if entry.due(self.timeout).is_none_or(|at| at > now) {
            return self.look_again(id);
        }
        // The task that takes the reply may be blocked.
        if let Phase::Asked(asked) = &mut entry.phase
            && let Some(reply) = asked.arrived()
        {
            let (node, tag) = (entry.node, entry.tag);
            if let Some(Node {
                link: Some(link), ..
            }) = self.nodes.get(node)
            {
                let link = link.number;
                self.replied(Way { node, link }, What::Acquire { id, tag }, reply);
            }
            return self.entry_due(id, now);
        }
        let (request, node) = (Arc::clone(&entry.request), entry.node);
        let is_held_back = self.held_back.contains(&id);
        match &mut entry.phase {
            Phase::Asked(asked) if asked.again.is_some_and(|at| at <= now) => {
                asked.again = None;
                self.ask_again(id);
                self.look_again(id);
            }
            Phase::Asked(_) if now < self.read_until => {
                self.due.insert((self.read_until, id));
            }
            Phase::Asked(asked) => {
                let error = match (self.nodes.get(node), &self.cluster) {
                    (Some(Node { link: Some(_), .. }), _) => None,
                    (Some(node), _) => Some(&*node.last_error),
                    (None, slots) => slots.as_ref().map(|slots| &*slots.last_error),
                };
                let error = match (error, request.keys.first()) {
                    (None, Some(key)) if is_held_back => Error::HeldByJob(key.clone()),
                    _ => asked.too_late(error),
                };
                self.give_up_asking(id, error);
            }
            Phase::Held(held) if held.until.is_some_and(|until| until <= now) => {
                self.lose(id, Reason::Max);
                self.end_at_server(id, request, node, false);
            }
            Phase::Held(held) if held.state.deadline().is_some_and(|at| at <= now) => {
                self.lose(id, Reason::Lease);
            }
            Phase::Held(held) if held.ask_at.is_some_and(|at| at <= now) => {
                self.ask_whether_wanted_again(id);
            }
            Phase::Held(_) => self.keep(node, now),
            Phase::Released(..) => {}
        }
    }

    /// Fails a request that the server may have granted meanwhile.
    pub fn give_up_asking(&mut self, id: u64, error: Error) {
        if let Some(Entry {
            request,
            node,
            phase: Phase::Asked(asked),
            ..
        }) = self.entries.get(&id)
        {
            let (request, node, was_sent) = (Arc::clone(request), *node, asked.was_sent);
            self.fail(id, error);
            if was_sent {
                self.end_at_server(id, request, node, true);
            }
        }
    }

    pub fn connect(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let mut tag = None;
        if let Some(slots) = &self.cluster {
            tag = tag_in(|slot| slots.serves(number, slot));
            if tag.is_none() {
                // It serves none; what it had goes elsewhere.
                node.last_error = "the node serves no slots".into();
                node.connect_later();
                return self.read_slots();
            }
        }
        let open = Link::open(
            node.client.clone(),
            self.timeout,
            tag,
            self.options.needs_module,
        );
        node.connecting = Some(self.runtime.spawn(open));
    }

    /// Every hold with WATCHDOG is lost. Waits and holds with a deadline go on by the next connection.
    pub fn disconnected(&mut self, number: usize, why: &str) {
        let Some(node) = self.nodes.get_mut(number) else {
            return;
        };
        if node.link.take().is_none() {
            return;
        }
        node.last_error = why.into();
        node.connect_later();
        self.nobody_waits_at(number);
        self.is_connected.store(false, Ordering::Relaxed);
        for pending in self
            .pending
            .values_mut()
            .filter(|pending| pending.node == number)
        {
            pending.sent = false;
        }
        for id in self.entries_at(number) {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            self.by_tag.remove(&entry.tag);
            let was_sent = entry.tag != 0;
            (entry.tag, entry.regains) = (0, false);
            let request = Arc::clone(&entry.request);
            match &mut entry.phase {
                Phase::Asked(asked) if asked.to.is_closed() => self.cancel(id),
                Phase::Asked(asked) => {
                    asked.was_sent_before |= was_sent;
                    asked.forget();
                }
                Phase::Held(held) if held.state.deadline().is_none() => {
                    self.lose(id, Reason::Connection);
                    self.end_at_server(id, request, number, false);
                }
                Phase::Held(held) => held.renewals = 0,
                Phase::Released(released) => {
                    released.reply.forget();
                    let lost = released.lost.map(|reason| Err(Error::Lost(reason)));
                    let (to, behind) = (released.to.take(), released.behind);
                    let end = released.end.take().or(lost).unwrap_or(Ok(()));
                    self.remove(id);
                    self.end_at_server(id, request, number, false);
                    if let Some(behind) = behind {
                        self.gave_way(behind, &end);
                    }
                    if let Some(to) = to {
                        self.answer(to, end);
                    }
                }
            }
        }
        self.no_tokens_of(number, why);
        self.look_whether_wanted(number);
        self.read_slots();
    }

    fn entries_at(&self, node: usize) -> Vec<u64> {
        let its = self.entries.iter().filter(|(_, entry)| entry.node == node);
        its.map(|(&id, _)| id).collect()
    }

    fn look_whether_wanted(&mut self, number: usize) {
        let has_entry = self.entries.values().any(|entry| entry.node == number);
        let has_pending = self.pending.values().any(|pending| pending.node == number);
        self.nodes[number].wanted = has_entry || has_pending;
    }

    pub fn not_connected(&mut self, number: usize, error: &Error) {
        let node = &mut self.nodes[number];
        node.last_error = match error {
            Error::Connection(text) => text.clone(),
            error => error.to_string(),
        };
        node.connect_later();
        node.is_anew = false;
        self.nobody_waits_at(number);
        if error.is_for_good() {
            self.fail_asked(number, error);
        }
        self.look_whether_wanted(number);
        self.read_slots();
    }

    /// No use in trying: a password, a permission.
    pub fn fail_asked(&mut self, number: usize, error: &Error) {
        for id in self.entries_at(number) {
            self.fail(id, error.clone());
        }
    }

    /// First the pending commands, then the plain holds, then the waits that go on.
    pub fn connected(&mut self, number: usize, link: Link) {
        let node = &mut self.nodes[number];
        node.start_beat(link.since);
        node.is_anew = false;
        node.backend = Some(link.speech.backend);
        node.ask_at = match link.speech.has_module() {
            true => Time::MAX,
            false => clock::now() + self.options.asks_again,
        };
        node.link = Some(link);
        node.wanted = false;
        self.is_connected.store(true, Ordering::Relaxed);
        self.say_backend();
        let asked = |(id, entry): (&u64, &super::entry::Entry)| match &entry.phase {
            Phase::Asked(asked) if entry.node == number => Some((asked.since, *id)),
            _ => None,
        };
        let mut asked: Vec<_> = self.entries.iter().filter_map(asked).collect();
        asked.sort_unstable();
        // Before any hold: the server is to know how long this process may be silent.
        self.beat(number, clock::now());
        asked.iter().for_each(|&(_, id)| self.stand_again(id));
        self.send_all_pending();
        for id in self.entries_at(number) {
            self.regain(id);
        }
        asked.into_iter().for_each(|(_, id)| self.ask_again(id));
    }
}
