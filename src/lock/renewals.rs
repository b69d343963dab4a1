//! The renewals of watched leases: when they are due, and what each of them writes.

use std::collections::BTreeSet;

use super::bonds::Bond;
use super::watch::own_lease;
use super::{Bytes, Cause, Core, Effect, Key, Keyspace, Kind, Lease, Mode, Now, Step};

/// A renewal that has to wait for lease keys on another node is tried again after so
/// many ms.
const RETRY_MS: i64 = 100;

impl Core {
    /// The watched leases that are to be renewed now, at most so many.
    pub fn due_renewals(&self, now: Now, most: usize) -> Vec<Bond> {
        let limit = now.wall_ms().saturating_add(1);
        self.renewals.before(limit, most)
    }

    /// The wall-clock ms of the first renewal.
    pub fn next_renewal(&self) -> Option<i64> {
        self.renewals.first()
    }

    /// Renews these leases. Whether that was so much that some are left, and due still.
    pub fn renew_watched<K: Keyspace>(&mut self, step: &mut Step<'_, K>, due: &[Bond]) -> bool {
        let before = step.out.len();
        let mut due = due.iter();
        for (key, owner) in due.by_ref() {
            self.renew_watch(step, key, owner);
            if step.is_long(before) {
                break;
            }
        }
        due.len() > 0
    }

    /// Renews a watched lease: to its full length from now, but not beyond
    /// `rlock.watchdog-max`, and never to an earlier moment.
    fn renew_watch<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, owner: &Bytes) {
        let look = self.look(step, key, owner);
        let its = self.entry(key).is_some_and(|e| e.plain_of(owner).is_some());
        if its && look.kind == Kind::Plain && look.holds == 0 {
            // Somebody else has it, and nobody told.
            self.ended(step, key, Cause::Removed);
            self.settle_pending(step);
        }
        let held = self.entry(key).and_then(|entry| entry.hold(owner));
        let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
            return;
        };
        let (lease, bound, from) = (watch.lease, watch.bound, watch.next);
        let full = step.now.deadline(lease);
        let to = bound.map_or(full, |bound| full.min(bound));
        let away = look.lease == Lease::Away;
        match own_lease(&look) {
            Lease::Until(at) if at < to && !away => self.set_lease(step, key, owner, &look, to),
            // Its lease keys were given another end by hand than the hash, or are on
            // another node.
            Lease::Until(_) | Lease::Endless | Lease::Away
                if look.expires.is_some_and(|end| end < to) =>
            {
                step.expire_at(key, look.expires, Some(to));
                self.know_shared(key, |shared| shared.expires = Some(to));
            }
            Lease::Until(_) | Lease::Gone | Lease::Endless | Lease::Away => {}
        }
        let end = self.lease_end(key, owner);
        let last = bound.is_some_and(|bound| bound <= full);
        if let Some(watch) = self
            .entry_mut(key)
            .and_then(|entry| entry.hold_mut(owner))
            .and_then(|hold| hold.watch.as_mut())
        {
            watch.schedule(step.now);
            if last {
                watch.next = None;
            }
            if away {
                // As soon as they are here. If that is not before its end, it is
                // written anew then.
                let soon = step.now.deadline(RETRY_MS);
                watch.next = watch.next.map(|at| at.min(soon).min(end.unwrap_or(soon)));
            }
            let next = watch.next;
            let bond = (key.clone(), owner.clone());
            self.renewals.change(&bond, from, next);
        }
    }

    /// A watched lease ran out because the server stood still: it is written anew
    /// with the same token, for nobody can have come between. Whether it was.
    pub(super) fn revive<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        ended: Option<i64>,
    ) -> bool {
        let held = self.entry(key).and_then(|entry| entry.hold(owner));
        let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
            return false;
        };
        let full = step.now.deadline(watch.lease);
        let at = watch.bound.map_or(full, |bound| full.min(bound));
        let now_ms = step.now.wall_ms();
        // Ended before its time, it was ended by somebody.
        let in_time = ended.is_some_and(|ended| ended < now_ms);
        if !in_time || !watch.stalled(ended) || at < now_ms {
            return false;
        }
        let plain = watch.holds(Mode::Exclusive);
        let (reads, writes) = (watch.holds(Mode::Read), watch.holds(Mode::Write));
        if self.revived.0 != step.now.wall_us {
            self.revived = (step.now.wall_us, BTreeSet::new());
        }
        self.revived.1.insert(key.clone());
        if plain > 0 {
            step.write(Effect::Take {
                key: key.clone(),
                owner: owner.clone(),
                holds: plain,
                at,
            });
            self.set_deadline(key, Some(at));
            return true;
        }
        self.rewrite_party(step, key, owner, (reads, writes), at);
        true
    }
}
