//! What an owner's other requests come to when it gets a hold: they nest, are
//! refused, or go first.

use super::acquire::{held, How};
use super::stats::Counters;
use super::waiting::Turn;
use super::{Bytes, Core, Key, Keyspace, Link, Refusal, Step, WaiterId};

/// A circle is believed after so many looks at the most, whatever others do.
const MOST_LOOKS: u32 = 16;

impl Core {
    /// Owners that have become holders: their other requests for the key nest at
    /// once, or are refused. Those for other keys may have closed a circle.
    pub(super) fn judge_joined<K: Keyspace>(&mut self, step: &mut Step<'_, K>) {
        while let Some((key, owner)) = self.joined.pop_first() {
            self.judge(step, &key, &owner);
            if self.by_owner.contains_key(&owner) {
                self.suspects.insert(owner);
            }
        }
    }

    /// An owner holds the key now.
    fn judge<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, owner: &Bytes) {
        let Some(ids) = self.by_owner.get(owner) else {
            return;
        };
        let ids: Vec<WaiterId> = ids.iter().copied().collect();
        for id in ids {
            let Some(waiter) = self.waiters.get(&id) else {
                continue;
            };
            if !waiter.keys.contains(key) {
                continue;
            }
            if let Some(refusal) = self.cannot_wait(step, key, id) {
                self.refuse(step, id, refusal);
            } else if matches!(self.turn(step, id), Turn::NotYet) && self.becomes_upgrade(id, key) {
                if let Some(circle) = self.proven(step, |core| core.other_upgrade(id)) {
                    Counters::up(&mut self.counters.deadlocks);
                    self.refuse(step, id, Refusal::Deadlock { circle });
                }
            }
        }
    }

    /// All queues are as they will be. Whether an owner waited in a circle, and one
    /// of its requests came to an end by that.
    pub(super) fn judge_circles<K: Keyspace>(&mut self, step: &mut Step<'_, K>) -> bool {
        while let Some(owner) = self.suspects.pop_first() {
            let now = step.now;
            let circle = self.proven(step, |core| core.circle_of(&owner, now));
            let request = |circle: &Vec<Link>| self.first_on(&owner, &circle.first()?.on);
            let Some((id, circle)) = circle.and_then(|c| Some((request(&c)?, c))) else {
                continue;
            };
            if self.waiters.get(&id).is_some_and(|w| w.is_late(step.now)) {
                self.timed_out(step, id);
            } else if let Some(circle) = self.let_past(step, id, circle) {
                Counters::up(&mut self.counters.deadlocks);
                self.refuse(step, id, Refusal::Deadlock { circle });
            }
            // It may be in another one.
            self.suspects.insert(owner);
            return true;
        }
        false
    }

    /// A circle, when each key in it was looked at: others may have taken a lock or
    /// left it, and nobody told.
    pub(super) fn proven<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        find: impl Fn(&Self) -> Option<Vec<Link>>,
    ) -> Option<Vec<Link>> {
        let mut circle = find(self)?;
        for _ in 0..MOST_LOOKS {
            for link in &circle {
                self.see(step, &link.on, &link.for_);
                self.know_holder(step, &link.on);
            }
            let again = find(self)?;
            if again == circle {
                break;
            }
            circle = again;
        }
        Some(circle)
    }

    /// A waiter whose owner holds one of its keys may not wait on: ONCE, or a
    /// mode that does not go with the one it has.
    fn cannot_wait<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        id: WaiterId,
    ) -> Option<Refusal> {
        let waiter = self.waiters.get(&id).cloned()?;
        if waiter.is_late(step.now) {
            return None;
        }
        let want = &waiter.want;
        let mut look = self.see(step, key, &want.owner);
        match self.may(step, key, &want.owner, want.mode, &mut look) {
            Ok(Some(How::Nest)) if waiter.once => Some(held(key, &want.owner)),
            Err(refusal @ Refusal::OtherMode { .. }) => Some(refusal),
            _ => None,
        }
    }

    /// A writer that waits has come to read meanwhile: it goes first.
    fn becomes_upgrade(&mut self, id: WaiterId, key: &Key) -> bool {
        let Some(waiter) = self.waiters.get(&id) else {
            return false;
        };
        let keys = [key.clone()];
        let upgrades = waiter.keys == keys && self.upgrades(&keys, &waiter.want);
        if upgrades && !waiter.rank.is_front() {
            let rank = self.front(key, id);
            self.rerank(id, rank);
        }
        upgrades
    }
}
