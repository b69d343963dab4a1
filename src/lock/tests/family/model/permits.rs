//! Permits: a hold for each of them, a limit for all, and a lease for each owner.

use super::waiting::Status;
use super::{Answer, Ask, Kind, Mode, Model, Owner, Place, Reply, Waiter, Why};

/// How many permits there are to be, and how many are taken; of holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    pub limit: usize,
    pub count: usize,
}

impl Share {
    pub const HOLD: Self = Self { limit: 0, count: 1 };
}

/// The limit that requests say, and the one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    pub asked: usize,
    pub now: usize,
}

impl Model {
    /// How many permits are out.
    pub fn out(&self, place: Place) -> usize {
        let permits = self.holds_at(place).filter(|h| h.mode == Mode::Permits);
        permits.count()
    }

    /// What becomes of a request for permits of a lock that is held by some.
    pub fn status_of_permits(&self, waiter: &Waiter, place: Place) -> Status {
        let (ask, limit) = (&waiter.ask, self.limits[&place]);
        let Share {
            limit: asked,
            count,
        } = ask.share;
        let refuse = |why| Status::Refused(vec![why]);
        let own = self.count(place, ask.owner, Mode::Permits);
        let is_first = self.ahead(waiter, place).next().is_none();
        // One that waits is looked at when its turn comes, or when its owner has come to hold
        // some.
        let has_come_to_hold = own > 0 && self.judged.contains(ask.owner);
        let is_looked_at = is_first || has_come_to_hold || waiter.id == self.arrivals;
        if asked != limit.asked && is_looked_at {
            return refuse(Why::WrongLimit);
        }
        if ask.once && own > 0 && asked == limit.asked {
            return if own == count {
                Status::Granted
            } else {
                refuse(Why::Held)
            };
        }
        if count > limit.now && is_looked_at {
            return refuse(Why::WrongLimit);
        }
        let fits = asked == limit.asked && self.out(place) + count <= limit.now;
        if fits && is_first {
            Status::Granted
        } else {
            Status::Stays
        }
    }

    /// LIMIT.
    pub fn limit(&mut self, place: Place, limit: usize) -> Reply {
        self.know([&place]);
        match self.kind(place) {
            Some(Kind::Permits) => {}
            None => return self.refused(Why::NotHeld),
            Some(Kind::Text) => return self.refused(Why::WrongType),
            Some(Kind::Plain | Kind::Shared) => return self.refused(Why::WrongMode),
        }
        let known = self.limits.get_mut(&place).unwrap();
        let was = std::mem::replace(&mut known.now, limit);
        if limit < was {
            let over = self.dequeue(|waiter| {
                let ask = &waiter.ask;
                let here = ask.keys == [place] && ask.mode == Mode::Permits;
                here && ask.share.count > limit
            });
            let over = over
                .iter()
                .map(|w| (w.id, Answer::Refused(Why::WrongLimit)));
            self.answers.extend(over);
        }
        self.settle();
        Reply::Count(was as i64)
    }

    fn refused(&mut self, why: Why) -> Reply {
        self.settle();
        Reply::Refused(vec![why])
    }

    /// The newest request by which those who hold permits and wait leave too few for the first
    /// in the queue of a key.
    pub fn hoards(&self, place: Place) -> Option<usize> {
        if !self.detect_deadlocks || self.kind(place) != Some(Kind::Permits) {
            return None;
        }
        let here = || self.queue.iter().filter(|w| w.ask.keys.contains(&place));
        let first = here().next().filter(|w| w.ask.mode == Mode::Permits)?;
        let waits = |owner: Owner| here().any(|w| w.ask.owner == owner);
        let held = self.holds_at(place).filter(|hold| waits(hold.owner));
        let left = self.limits[&place].now as i64 - held.count() as i64;
        if left >= first.ask.share.count as i64 {
            return None;
        }
        let holds = |w: &&Waiter| self.count(place, w.ask.owner, Mode::Permits) > 0;
        here().filter(holds).map(|w| w.id).max()
    }

    /// Somebody who holds permits and waits for more is refused, so that the first can have
    /// its own.
    pub fn hoard_one(&mut self) -> bool {
        let places: Vec<Place> = self.limits.keys().copied().collect();
        let found = places.into_iter().find_map(|place| self.hoards(place));
        found.inspect(|id| self.refuse(*id, Why::Deadlock));
        found.is_some()
    }

    /// Whether a request keeps permits back that the first in its queue needs.
    pub fn is_hoarder(&self, id: usize) -> bool {
        let ask: &Ask = &self.waiter(id).ask;
        ask.keys.iter().any(|place| self.hoards(*place) == Some(id))
    }
}
