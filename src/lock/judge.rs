//! What an owner's other requests come to when it gets a hold: they nest, are
//! refused, or go first.

use std::collections::BTreeSet;

use super::acquire::{held, How};
use super::queue::Waiter;
use super::rank::Rank;
use super::stats::Counters;
use super::{Core, Key, Keyspace, Link, Refusal, Step, WaiterId};

/// A circle is believed after so many looks at the most, whatever others do.
const MOST_LOOKS: u32 = 16;

impl Core {
    /// An owner has come to hold a key, or lost a request for it: its other requests
    /// for the key nest at once, or are refused. What else comes of it is judged when
    /// nobody can be granted any more.
    pub(super) fn join(&mut self, key: &Key, owner: &[u8]) {
        let Some((owner, _)) = self.by_owner.get_key_value(owner) else {
            return;
        };
        let owner = owner.clone();
        // Where nobody waits, nobody waits for the new holder.
        if self.entry(key).is_none_or(|entry| entry.queue().is_empty()) {
            return;
        }
        for (rank, id) in self.requests(&owner, key) {
            self.nesting.insert((rank, id, key.clone()));
        }
        self.suspects.insert(owner.clone());
        self.risen.insert((key.clone(), owner));
    }

    /// The first request for a key that its owner has come to hold nests there, is
    /// refused, or waits on; if it stands before this place. Whether there was one.
    pub(super) fn nest_first<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        before: Option<&Rank>,
    ) -> bool {
        let Some((rank, id, key)) = self.nesting.first().cloned() else {
            return false;
        };
        if before.is_some_and(|before| rank >= *before) {
            return false;
        }
        self.nesting.pop_first();
        match self.cannot_wait(step, &key, id) {
            Some(refusal) => self.refuse(step, id, refusal),
            None => {
                self.turn(step, id);
            }
        }
        true
    }

    /// Writers that wait and have come to read meanwhile go first, but for the second
    /// of two. Whether one of them did, or was refused.
    pub(super) fn judge_upgrades<K: Keyspace>(&mut self, step: &mut Step<'_, K>) -> bool {
        let mut all = Vec::new();
        for (key, owner) in std::mem::take(&mut self.risen) {
            for (rank, id) in self.requests(&owner, &key) {
                let upgrades = |w: &Waiter| self.upgrades(&w.keys, &w.want);
                if self.waiters.get(&id).is_some_and(upgrades) {
                    all.push((rank, id, key.clone(), owner.clone()));
                }
            }
        }
        all.sort();
        let mut all = all.into_iter();
        while let Some((rank, id, key, _)) = all.next() {
            if let Some(circle) = self.proven(step, |core| core.other_upgrade(id)) {
                Counters::up(&mut self.counters.deadlocks);
                self.refuse(step, id, Refusal::Deadlock { circle });
            } else if !rank.is_front() {
                let rank = self.front(&key, id);
                self.rerank(id, rank);
            } else {
                continue;
            }
            self.risen
                .extend(all.map(|(_, _, key, owner)| (key, owner)));
            return true;
        }
        false
    }

    /// All queues are as they will be. If some wait in a circle, one of them finds a way
    /// out of it; if nobody does, the oldest request in it is refused. Whether that was
    /// so.
    pub(super) fn judge_circles<K: Keyspace>(&mut self, step: &mut Step<'_, K>) -> bool {
        let now = step.now;
        let mut owners = std::mem::take(&mut self.suspects);
        owners.retain(|owner| self.is_in_circle(owner, now));
        let requests = owners.iter().filter_map(|owner| self.by_owner.get(owner));
        let ids: BTreeSet<WaiterId> = requests.flat_map(|r| r.ids()).collect();
        let mut first = None;
        for id in ids {
            let Some(circle) = self.proven(step, |core| core.circle_through(id, now)) else {
                continue;
            };
            if self.finds_a_way(step, id) {
                // There may be another one.
                self.suspects.extend(owners);
                return true;
            }
            first.get_or_insert((id, circle));
        }
        let Some((id, circle)) = first else {
            return false;
        };
        Counters::up(&mut self.counters.deadlocks);
        self.refuse(step, id, Refusal::Deadlock { circle });
        self.suspects.extend(owners);
        true
    }

    /// A circle, when each key in it was looked at: others may have taken a lock or
    /// left it, and nobody told.
    pub(super) fn proven<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        find: impl Fn(&Self) -> Option<Vec<Link>>,
    ) -> Option<Vec<Link>> {
        let mut circle = find(self)?;
        // A wait whose time is over holds nobody up.
        let limit = step.now.mono_us.saturating_add(1);
        for id in self.timeouts.before(limit, usize::MAX) {
            let key = self.waiters.get(&id).and_then(|waiter| waiter.keys.first());
            if key.is_some_and(|key| step.ks.is_at_hand(key)) {
                self.timed_out(step, id);
            }
        }
        for _ in 0..MOST_LOOKS {
            if !circle.iter().all(|link| step.ks.is_at_hand(&link.on)) {
                // Whoever can look at all of them judges it.
                let first = circle.into_iter().next();
                self.later.suspects.extend(first.map(|link| link.waits));
                return None;
            }
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
}
