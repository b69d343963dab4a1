//! The places of requests with ONCE whose connection has closed: whoever sends one again
//! in time has its place again.

use super::{Ask, Client, Model, Waiter};

/// Where a request stands among all that do not stand in front.
pub type Rank = i128;

/// So far apart are two that come one after the other: others can be let past between.
const STEP: Rank = 1 << 80;

/// A place, and for which request it is kept, until when by the monotonic clock, us.
#[derive(Clone, Debug)]
pub struct Kept {
    pub ask: Ask,
    rank: Rank,
    until: i64,
}

/// That of a request by its arrival.
pub fn arrived(id: usize) -> Rank {
    STEP * id as Rank
}

impl Model {
    /// The requests of a connection that is closed leave the queue.
    pub fn cut_off(&mut self, client: Client) {
        let gone = self.dequeue(|waiter| waiter.ask.client == client);
        let Some(ms) = self.keep_place else {
            return;
        };
        let until = self.mono_us + ms * 1000;
        for Waiter { ask, rank, .. } in gone {
            if let Some(rank) = rank.filter(|_| ask.once) {
                self.forget_place(&ask);
                self.kept.push(Kept { ask, rank, until });
            }
        }
    }

    /// The place that is kept for a request, which then is not kept any more.
    fn forget_place(&mut self, ask: &Ask) -> Option<Rank> {
        let at = self.kept.iter().position(|kept| kept.ask.is_same(ask))?;
        let kept = self.kept.remove(at);
        (kept.until > self.mono_us).then_some(kept.rank)
    }

    /// A request is not sent again any more: it was granted.
    pub fn is_granted(&mut self, ask: &Ask) {
        if ask.once {
            self.forget_place(ask);
        }
    }

    /// It waits from now on in the place that it had. Whether it has one.
    pub fn take_kept(&mut self, id: usize) -> bool {
        let ask = self.waiter(id).ask.clone();
        let kept = ask.once.then(|| self.forget_place(&ask)).flatten();
        let Some(rank) = kept.filter(|_| !self.waiter(id).upgrades) else {
            return false;
        };
        self.stand(id, rank);
        true
    }

    /// Puts a request where others of such a rank stand.
    pub fn stand(&mut self, id: usize, rank: Rank) {
        let from = self.queue.iter().position(|w| w.id == id).unwrap();
        let mut waiter = self.queue.remove(from);
        waiter.rank = Some(rank);
        let behind = |other: &Waiter| other.rank.is_some_and(|its| its > rank);
        let at = self.queue.iter().position(behind);
        self.queue.insert(at.unwrap_or(self.queue.len()), waiter);
    }

    /// The rank right before another's, behind all that come before that.
    pub fn just_before(&self, rank: Rank) -> Rank {
        let waiting = self.queue.iter().filter_map(|waiter| waiter.rank);
        let all = waiting.chain(self.kept.iter().map(|kept| kept.rank));
        let below = all.filter(|other| *other < rank).max();
        let below = below.unwrap_or(rank - STEP);
        assert!(rank - below > 1, "no room between two ranks");
        below + (rank - below) / 2
    }
}
