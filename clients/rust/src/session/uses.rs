//! Uses of sticky locks that wait for their turn, or for the session otherwise.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{self, Time};
use crate::error::Error;
use crate::turn::{Acquired, Turn};

use super::actor::Actor;
use super::entry::Phase;
use super::stay::{Stay, Waiting};
use super::{Answer, Session};

impl Session {
    /// Ends when the use has its turn.
    pub async fn begin_use(
        &self,
        turn: &Arc<Turn>,
        number: u64,
        wait: Duration,
    ) -> Result<Arc<Acquired>, Error> {
        self.ask(|actor, to| {
            actor.begin_use(turn, number, wait, to);
            None
        })
        .await
    }

    /// Nobody wants that use any more.
    pub fn leave_use(&self, id: u64, number: u64) {
        _ = self.with(|actor| actor.leave_use(id, number));
    }

    /// A use has ended, and somebody has to look.
    pub fn look_at_stay(&self, id: u64) {
        _ = self.with(|actor| actor.look_at_stay(id));
    }

    /// Ends when the lock is proved to be here, or known to be lost.
    pub async fn prove_use(&self, id: u64) {
        let asked = self.ask(|actor, to| {
            actor.prove_use(id, to);
            None
        });
        // Without a session it is lost.
        _ = asked.await;
    }

    pub async fn use_token(&self, id: u64, number: u64) -> Result<u64, Error> {
        self.ask(|actor, to| {
            actor.use_token(id, number, to);
            None
        })
        .await
    }

    pub async fn close_stay(&self, turn: &Arc<Turn>) {
        let asked = self.ask(|actor, to| {
            actor.close_stay(turn, to);
            None
        });
        // What the server refuses is asked for again.
        _ = asked.await;
    }

    /// Nobody has it any more.
    pub fn drop_stay(&self, id: u64) {
        _ = self.with(|actor| actor.drop_stay(id));
    }
}

impl Actor {
    fn begin_use(
        &mut self,
        turn: &Arc<Turn>,
        number: u64,
        wait: Duration,
        to: Answer<Arc<Acquired>>,
    ) {
        if self.closed {
            return self.answer(to, Err(Error::closed()));
        }
        let now = clock::now();
        let (until, last) = (now + wait, now + wait.max(self.timeout));
        let stay = self.stay_of(turn);
        if stay.closed {
            let error = is_closed(turn);
            return self.answer(to, Err(error));
        }
        stay.line.push_back(Waiting {
            number,
            until,
            last,
            to,
        });
        self.look_at_stay(turn.id);
    }

    fn stay_of(&mut self, turn: &Arc<Turn>) -> &mut Stay {
        let new = || Stay::new(Arc::clone(turn));
        self.stays.entry(turn.id).or_insert_with(new)
    }

    fn leave_use(&mut self, id: u64, number: u64) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        let waits = stay.line.len();
        stay.line.retain(|waiting| waiting.number != number);
        if stay.line.len() == waits {
            // It was given it just now.
            stay.turn.give_back(number);
        } else {
            self.somebody_left(id);
        }
        self.look_at_stay(id);
    }

    /// The last one takes the request along.
    fn somebody_left(&mut self, id: u64) {
        if let Some(stay) = self.stays.get_mut(&id)
            && stay.line.is_empty()
            && stay.acquired.is_none()
            && let Some(request) = stay.id.take()
        {
            self.cancel(request);
        }
    }

    pub fn leave_all(&mut self, id: u64, error: &Error) {
        let line = self.stays.get_mut(&id).map(|stay| &mut stay.line);
        for waiting in line.map(std::mem::take).into_iter().flatten() {
            self.answer(waiting.to, Err(error.clone()));
        }
        self.somebody_left(id);
    }

    /// Those whose time is over, if it is known why they did not get it.
    pub fn let_overdue_go(&mut self, id: u64, now: Time) {
        let Some(stay) = self.stays.get(&id) else {
            return;
        };
        if stay.line.iter().all(|waiting| now < waiting.until) {
            return;
        }
        let key = stay.turn.key.clone();
        let owner = stay.acquired.as_ref().map(|of| of.request.owner().into());
        let held_by = owner.filter(|_| stay.turn.is_used());
        let is_known = held_by.is_some() || self.is_known_to_wait(stay);
        let not_acquired = Error::NotAcquired { key, held_by };
        let connection = Error::Connection(self.why_not(stay));
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        let (goes, stays) = std::mem::take(&mut stay.line)
            .into_iter()
            .partition(|waiting| now >= waiting.until && (is_known || now >= waiting.last));
        stay.line = stays;
        let goes: std::collections::VecDeque<Waiting> = goes;
        if goes.is_empty() {
            return;
        }
        for waiting in goes {
            let error = if is_known { &not_acquired } else { &connection };
            self.answer(waiting.to, Err(error.clone()));
        }
        self.somebody_left(id);
    }

    /// The server has said that somebody else has it, on a connection that there is.
    fn is_known_to_wait(&self, stay: &Stay) -> bool {
        let entry = stay.id.and_then(|id| self.entries.get(&id));
        entry.is_some_and(|entry| {
            let node = self.nodes.get(entry.node);
            let is_connected = node.is_some_and(|node| node.link.is_some());
            matches!(&entry.phase, Phase::Asked(asked) if asked.stands && is_connected)
        })
    }

    fn why_not(&self, stay: &Stay) -> String {
        let entry = stay.id.and_then(|id| self.entries.get(&id));
        let node = entry.and_then(|entry| self.nodes.get(entry.node));
        match (node, &self.cluster) {
            (Some(node), _) if node.link.is_none() => node.last_error.clone(),
            (None, Some(slots)) if entry.is_some() => slots.last_error.clone(),
            _ => "the server did not answer in time".into(),
        }
    }

    /// The server has said that somebody else has it, which may be all that is known of those whose time is over.
    pub fn stands(&mut self, id: u64) {
        self.let_overdue_go(id, clock::now());
        self.look_at_stay(id);
    }

    fn close_stay(&mut self, turn: &Arc<Turn>, to: Answer<()>) {
        let stay = self.stay_of(turn);
        stay.closed = true;
        self.leave_all(turn.id, &is_closed(turn));
        self.look_at_stay(turn.id);
        let stay = self.stays.get(&turn.id);
        let released = stay.and_then(|stay| stay.released);
        let released = released.and_then(|id| self.pending.get_mut(&id));
        match released {
            Some(pending) if !turn.is_used() => pending.to.push(to),
            // It goes back at the end of the use that is under way, or is not here.
            _ => self.answer(to, Ok(())),
        }
    }

    fn drop_stay(&mut self, id: u64) {
        if let Some(stay) = self.stays.get_mut(&id) {
            stay.closed = true;
            self.look_at_stay(id);
            self.forget_stay(id);
        }
    }

    /// The locks are closed: no use waits any more.
    pub fn end_waiting_uses(&mut self) {
        for id in self.stay_ids() {
            self.leave_all(id, &Error::closed());
        }
    }

    pub fn look_at_all_stays(&mut self) {
        for id in self.stay_ids() {
            self.look_at_stay(id);
        }
    }

    pub fn stay_ids(&self) -> Vec<u64> {
        self.stays.keys().copied().collect()
    }
}

fn is_closed(turn: &Turn) -> Error {
    Error::Connection(format!("the sticky lock {:?} is closed", turn.key))
}
