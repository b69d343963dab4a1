//! Sticky locks, as the session sees them. Uses take and give back their turn by themselves; what else there is to
//! decide is decided here, by `look_at_stay`, which takes the turn first: whatever has happened, it does what follows.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::acquire::fresh_id;
use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::job::fresh_owner;
use crate::request::{Mode, Request, Wait};
use crate::state::State;
use crate::turn::{Acquired, Turn};

use super::Answer;
use super::actor::Actor;
use super::backoff::Backoff;
use super::entry::{Asked, Entry, Phase, To};
use super::tokens::Tokens;

/// So long uses follow each other although somebody else waits.
const LEAST: Duration = Duration::from_millis(20);
/// Then it goes back although nobody says that he waits: who polls is to have a chance,
const MOST: Duration = Duration::from_secs(1);
/// of that length.
const PAUSE: Duration = Duration::from_millis(10);

/// A use that waits for its turn.
pub(super) struct Waiting {
    pub number: u64,
    pub until: Time,
    /// Without a word of the server.
    pub last: Time,
    pub to: Answer<Arc<Acquired>>,
}

pub(super) struct Stay {
    pub turn: Arc<Turn>,
    pub line: VecDeque<Waiting>,
    /// An acquisition that is under way, or what came of it.
    pub id: Option<u64>,
    pub acquired: Option<Arc<Acquired>>,
    since: Time,
    /// Until then it is not acquired.
    pause: Time,
    /// A use has had it since its grant.
    served: bool,
    backoff: Backoff,
    pub tokens: Tokens,
    pub closed: bool,
    /// Its last release.
    pub released: Option<u64>,
    /// The connection that is being proved.
    pub proves: Option<u64>,
    /// Uses that end, but ask first whether they had it.
    pub ends: Vec<Answer<()>>,
    /// When it is looked at again.
    wakes: Option<Time>,
}

impl Stay {
    pub fn new(turn: Arc<Turn>) -> Self {
        Self {
            turn,
            line: VecDeque::new(),
            id: None,
            acquired: None,
            since: Time::ZERO,
            pause: Time::ZERO,
            served: false,
            backoff: Backoff::default(),
            tokens: Tokens::default(),
            closed: false,
            released: None,
            proves: None,
            ends: Vec::new(),
            wakes: None,
        }
    }

    /// The lock is lost, or was never had.
    pub fn is_away(&self) -> bool {
        let acquired = self.acquired.as_ref();
        acquired.is_none_or(|acquired| acquired.state.reason().is_some())
    }

    fn is_wanted(&self) -> bool {
        let acquired = self.acquired.as_ref();
        acquired.is_some_and(|acquired| acquired.state.was_wanted())
    }

    /// Whether it goes back when no use is under way. `is_told`: the server says whether somebody else wants it.
    fn leaves(&self, is_told: bool, now: Time) -> bool {
        let alone = self.line.is_empty();
        if self.closed || self.tokens.is_unsure || (alone && self.backoff.is_on()) {
            return true;
        }
        if !is_told {
            return alone || self.served;
        }
        if self.is_wanted() {
            return alone || (self.served && now >= self.since + LEAST);
        }
        if now >= self.since + MOST {
            return alone || self.served;
        }
        alone && !self.turn.is_used() && now >= self.turn.used() + self.turn.idle
    }

    fn looks_again(&self, now: Time) -> Option<Time> {
        let line = self.line.iter().map(|waiting| {
            if now < waiting.until {
                waiting.until
            } else {
                waiting.last
            }
        });
        let mut due = line.chain(self.tokens.wake()).min();
        let mut also = |at: Time| due = Some(due.map_or(at, |due| due.min(at)));
        if self.id.is_none() && !self.line.is_empty() && now < self.pause {
            also(self.pause);
        }
        if !self.is_away() {
            let is_used = self.turn.is_used() || !self.line.is_empty();
            also(match is_used {
                true => now + self.turn.idle.max(Duration::from_millis(10)),
                // It was looked just now.
                false => (self.turn.used() + self.turn.idle)
                    .min(self.since + MOST)
                    .max(now + Duration::from_millis(1)),
            });
        }
        due
    }
}

impl Actor {
    /// Does what follows from what there is. While a use is under way that is nothing: at its end it is looked again.
    pub fn look_at_stay(&mut self, id: u64) {
        let now = clock::now();
        self.mark(id, now);
        let Some(stay) = self.stays.get(&id) else {
            return;
        };
        let turn = Arc::clone(&stay.turn);
        if turn.take_to_decide() {
            self.decide(id, now);
            turn.decided();
        }
        self.let_ends_go(id, now);
        self.mark(id, now);
        self.wind(id, now);
    }

    /// Before anything else is looked at: a use that has the turn already sees it at its end.
    fn mark(&mut self, id: u64, now: Time) {
        let Some(stay) = self.stays.get(&id) else {
            return;
        };
        stay.turn.set_waits(!stay.line.is_empty());
        if stay.is_away() || stay.leaves(self.is_told(stay), now) {
            stay.turn.stop();
        }
    }

    fn decide(&mut self, id: u64, now: Time) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        if stay.acquired.is_some() && stay.is_away() {
            stay.turn.empty();
            (stay.id, stay.acquired) = (None, None);
        }
        let stay = &self.stays[&id];
        if stay.acquired.is_some() && stay.leaves(self.is_told(stay), now) {
            self.go_back(id, now);
        }
        let stay = &self.stays[&id];
        if !stay.line.is_empty() && stay.id.is_none() && now >= stay.pause {
            self.acquire_to_stay(id, now);
        }
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        if stay.line.is_empty() || stay.is_away() {
            return;
        }
        if !stay.turn.is_proved(now) {
            return self.prove(id, now);
        }
        if let Some(acquired) = stay.acquired.clone()
            && let Some(first) = stay.line.pop_front()
        {
            stay.served = true;
            let turn = Arc::clone(&stay.turn);
            self.mark(id, now); // it may end at once
            turn.hand_to(first.number);
            self.answer(first.to, Ok(acquired));
        }
    }

    pub fn of_stay(&self, stay: &Stay) -> Option<&Entry> {
        self.entries.get(&stay.acquired.as_ref()?.id)
    }

    /// Whether the server says, on this connection, that somebody wants it.
    fn is_told(&self, stay: &Stay) -> bool {
        let Some(entry) = self.of_stay(stay) else {
            return false;
        };
        let link = self.nodes.get(entry.node).and_then(|n| n.link.as_ref());
        match (&entry.phase, link) {
            (Phase::Held(held), Some(link)) => held.asked_on == link.number && link.hears_wanted,
            _ => false,
        }
    }

    /// What else is waited for comes right behind it.
    fn go_back(&mut self, id: u64, now: Time) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        stay.turn.empty();
        stay.id = None;
        let is_wanted = stay.is_wanted();
        stay.backoff.went_back(stay.turn.uses(), is_wanted);
        if !is_wanted && now >= stay.since + MOST {
            stay.pause = now + PAUSE;
        }
        let tokens = stay.tokens.give_up();
        let acquired = stay.acquired.take();
        stay.released = acquired.as_ref().map(|acquired| acquired.id);
        for to in tokens {
            self.answer(to, Err(Error::Lost(Reason::Released)));
        }
        let Some(acquired) = acquired else { return };
        let Some(entry) = self.remove(acquired.id) else {
            return;
        };
        acquired.state.leave();
        self.notify(Arc::clone(&acquired.state));
        self.end_at_server(acquired.id, entry.request, entry.node, false);
    }

    fn acquire_to_stay(&mut self, id: u64, now: Time) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        let new = fresh_id();
        stay.id = Some(new);
        let request = Request {
            keys: vec![stay.turn.key.clone()],
            owner: fresh_owner(),
            own: OnceLock::new(),
            stands_as: OnceLock::new(),
            lease: stay.turn.lease,
            wait: Wait::Forever,
            mode: Mode::Plain,
            watchdog: true,
            max: None,
            in_quorum: false,
            acks: None,
            place: None,
        };
        let state = Arc::new(State::new(None));
        state.ask();
        let asked = Asked::new(To::Stay(id, state), now);
        if let Some(sent) = self.acquire(new, Arc::new(request), asked) {
            self.follow(sent);
        }
    }

    /// That was granted.
    pub fn acquired(&mut self, id: u64, node: usize, token: u64, acquired: Acquired) {
        let proof = self.nodes.get(node).map(|node| node.proof);
        let now = clock::now();
        let Some(stay) = self.stays.get_mut(&id) else {
            return self.cancel(acquired.id);
        };
        let acquired = Arc::new(acquired);
        (stay.since, stay.served) = (now, false);
        stay.tokens = Tokens::of(token);
        stay.turn.begins(now);
        stay.turn.set_proof(proof.unwrap_or(Time::ZERO));
        stay.turn.set_acquired(&acquired, now + MOST);
        stay.acquired = Some(acquired);
        self.look_at_stay(id);
    }

    /// It failed: so do all that wait.
    pub fn not_acquired_to_stay(&mut self, id: u64, request: u64, error: &Error) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        if stay.id == Some(request) {
            stay.id = None;
            self.leave_all(id, error);
            self.look_at_stay(id);
        }
    }

    /// What came of it is lost.
    pub fn lost_by_stay(&mut self, id: u64, request: u64, reason: Reason) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        if stay.id == Some(request) {
            stay.turn.stop();
            for to in stay.tokens.give_up() {
                self.answer(to, Err(Error::Lost(reason)));
            }
            self.look_at_stay(id);
        }
    }

    /// When to look again.
    fn wind(&mut self, id: u64, now: Time) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        // What came while this process was paused is read first.
        let due = stay.looks_again(now).map(|at| at.max(self.read_until));
        if let Some(before) = std::mem::replace(&mut stay.wakes, due) {
            self.due.remove(&(before, id));
        }
        self.due.extend(due.map(|due| (due, id)));
    }

    pub fn stay_is_due(&mut self, id: u64, now: Time) {
        if let Some(stay) = self.stays.get_mut(&id) {
            stay.wakes = None;
            if now >= self.read_until {
                self.let_tokens_go(id, now);
                self.let_overdue_go(id, now);
            }
            self.look_at_stay(id);
        }
    }

    pub fn forget_stay(&mut self, id: u64) {
        if let Some(stay) = self.stays.remove(&id)
            && let Some(at) = stay.wakes
        {
            self.due.remove(&(at, id));
        }
    }
}
