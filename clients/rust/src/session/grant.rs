//! A grant, until the program has it as a hold.

use std::sync::Arc;

use redis::Value;

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::hold::Hold;
use crate::state::State;
use crate::turn::Acquired;

use super::actor::{Actor, What};
use super::entry::{Entry, Held, Phase, To};
use super::node::{NOWHERE, Node};

impl Actor {
    /// Whichever says so first, the reply or the message. `deadline` is that of a plain
    /// hold, where it is known.
    pub fn granted(&mut self, id: u64, token: i64, deadline: Option<Time>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let Phase::Asked(asked) = &mut entry.phase else {
            return;
        };
        if asked.token.is_some() {
            return;
        }
        asked.token = Some(u64::try_from(token).unwrap_or(0));
        if asked.to.is_closed() {
            return self.cancel(id);
        }
        if let Some(reason) = asked.lost {
            return self.refuse_grant(id, Error::Lost(reason));
        }
        asked.deadline = deadline;
        self.make_sure(id);
    }

    /// Of what is granted, as far as there is something to make sure of.
    pub fn make_sure(&mut self, id: u64) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if (entry.gave_way()).is_some_and(|before| self.releasing.contains(&before)) {
            return; // until that is answered
        }
        let Phase::Asked(asked) = &mut entry.phase else {
            return;
        };
        let deadline = asked.deadline;
        let (request, tag) = (Arc::clone(&entry.request), entry.tag);
        let number = entry.node;
        let Some(Node {
            link: Some(link),
            acks,
            ..
        }) = self.nodes.get_mut(number)
        else {
            return;
        };
        if let Some(wanted) = request.acks {
            // It always answers, and in less than that, behind others too.
            asked.acked_by = Some(clock::now() + (wanted.1 + self.timeout * 3) * 2);
            asked.again = None;
            acks.ask(id, tag, &request, wanted, link, &self.runtime);
            self.leave_line(&request, number, id, true);
            return self.look_again(id);
        }
        if !request.watchdog && deadline.is_none() {
            let sent = clock::now();
            let renew = request.renew(&link.speech, request.lease, None);
            let sent = link.send(number, What::FirstRenew { id, tag, sent }, renew);
            return self.follow(sent);
        }
        self.give(id);
    }

    pub fn first_renewed(&mut self, id: u64, tag: u64, sent: Time, reply: Result<Value, Error>) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.tag == tag) else {
            return;
        };
        let lease = entry.request.lease;
        if let Phase::Asked(asked) = &mut entry.phase {
            asked.deadline = Some(sent + lease);
        }
        match reply {
            Ok(_) => self.give(id),
            Err(error) => self.refuse_grant(id, error),
        }
    }

    pub fn acked(&mut self, id: u64, tag: u64, end: Result<Time, Error>) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.tag == tag) else {
            return;
        };
        let lease = entry.request.lease;
        match (end, &mut entry.phase) {
            (Ok(sent), Phase::Asked(asked)) => {
                asked.deadline = Some(sent + lease);
                self.give(id);
            }
            (Err(error), _) => self.refuse_grant(id, error),
            _ => {}
        }
    }

    /// The lock is granted, and what had to be confirmed is refused.
    pub fn refuse_grant(&mut self, id: u64, error: Error) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let request = Arc::clone(&entry.request);
        let is_there = error != Error::Lost(Reason::Moved) && !error.is_elsewhere();
        let node = if is_there { entry.node } else { NOWHERE };
        self.fail(id, error);
        self.end_at_server(id, request, node, false);
    }

    /// Ends a request that has failed.
    pub fn fail(&mut self, id: u64, error: Error) {
        let is_asked = |entry: &Entry| matches!(entry.phase, Phase::Asked(_));
        if self.entries.get(&id).is_some_and(is_asked)
            && let Some(entry) = self.remove(id)
            && let Phase::Asked(asked) = entry.phase
        {
            if let Some(place) = &entry.request.place {
                place.leave();
            }
            self.answer_asked(id, asked.to, Err(error));
        }
    }

    /// `id`: what was asked for.
    pub fn answer_asked(&mut self, id: u64, to: To, answer: Result<Hold, Error>) {
        match (to, answer) {
            (To::Program(to), answer) => self.answer(to, answer),
            (To::Stay(stay, _), Err(error)) => self.not_acquired_to_stay(stay, id, &error),
            (To::Stay(..), Ok(_)) => {}
        }
    }

    /// To the program.
    fn give(&mut self, id: u64) {
        let is_asked = |entry: &Entry| matches!(entry.phase, Phase::Asked(_));
        if !self.entries.get(&id).is_some_and(is_asked) {
            return;
        }
        // From here on it is in the hold, for the last of them ends the session.
        let Some(session) = self.session() else {
            return self.cancel(id);
        };
        let Some(mut entry) = self.remove(id) else {
            return;
        };
        let keeps = self.keeps_at(&entry);
        let Phase::Asked(asked) = entry.phase else {
            return;
        };
        let request = &entry.request;
        let token = asked.token.unwrap_or(0);
        let deadline = asked.deadline.filter(|_| keeps || !request.watchdog);
        let new = || Arc::new(State::new(None));
        let state = asked.hint().map_or_else(new, Arc::clone);
        state.set_deadline(deadline);
        let stay = match asked.to {
            To::Stay(stay, _) => Some(stay),
            To::Program(_) => None,
        };
        let held = Held {
            state: Arc::clone(&state),
            token,
            lease: request.lease,
            until: request.max.map(|max| clock::now() + max),
            regained: stay.is_some(),
            renew_at: deadline
                .filter(|_| keeps)
                .map(|at| at - request.lease * 2 / 3),
            renewals: 0,
            asked_on: asked.asked_on,
            ask_at: None,
            stay,
        };
        self.by_tag.insert(entry.tag, id);
        let (node, request) = (entry.node, Arc::clone(request));
        entry.phase = Phase::Held(held);
        self.entries.insert(id, entry);
        self.look_again(id);
        match asked.to {
            To::Program(to) => {
                let hold = Hold::new(id, request, token, session, state);
                self.answer(to, Ok(hold));
            }
            To::Stay(stay, _) => {
                let acquired = Acquired { id, request, state };
                self.acquired(stay, node, token, acquired);
            }
        }
    }
}
