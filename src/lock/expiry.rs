//! What happens when a lease runs out, and when a key changes under us.
//!
//! A key's event is a hint, the key is the truth: whatever was heard, the key is
//! looked at again. The hint only says why a key that is gone went.

use super::{Core, Effect, Effects, Event, Key, Keyspace, Kind, Look, Now};

/// Why a key that is gone went, as far as we were told.
///
/// In order of weight: of several things heard of a key the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Nobody told, or only of another TTL: its deadline decides whether the
    /// lease ran out.
    Unknown,
    /// Somebody's command removed or replaced it.
    Removed,
    /// The server evicted it for want of memory.
    Evicted,
    /// The server expired it.
    Expired,
}

impl Cause {
    /// What the look itself tells.
    pub(super) fn seen_by(look: Look) -> Self {
        if look.ran_out {
            Self::Expired
        } else {
            Self::Unknown
        }
    }
}

impl Core {
    /// The locks whose deadline has passed, at most so many, earliest first. Each
    /// is due for a [`Core::review`].
    pub fn due(&self, now: Now, most: usize) -> Vec<Key> {
        self.leases.before(now.wall_ms(), most)
    }

    /// The key is not this server's any more (its slot moved away): nothing that
    /// happens to it is ours to act on. Its waiters are sent on by the server.
    pub fn forsake(&mut self, key: &Key) {
        self.forget_holder(key);
    }

    /// Looks at a key again that may have changed without rlock's doing.
    pub fn review<K: Keyspace>(
        &mut self,
        ks: &mut K,
        now: Now,
        key: &Key,
        cause: Cause,
        out: &mut Effects,
    ) {
        let Some(entry) = self.entry(key) else {
            return;
        };
        let known = entry.holder.as_ref().map(|hold| hold.owner.clone());
        let waited_for = !entry.queue.is_empty();
        let look = ks.look(key, known.as_deref().unwrap_or_default());
        let cause = match cause {
            Cause::Unknown => Cause::seen_by(look),
            told => told,
        };
        match look.kind {
            Kind::Free => {
                let ran_out = self.ended(key, cause, now, out);
                if self.hand_on(key, now, out).is_none() && ran_out {
                    out.push(Effect::Wake {
                        key: key.clone(),
                        shared: false,
                    });
                }
                return;
            }
            Kind::Plain => {
                // Removed and there again: another hold, be it the same owner's.
                if look.holds == 0 || cause > Cause::Unknown {
                    self.replaced(key, cause, now, out);
                }
                self.set_deadline(key, look.expires);
                if waited_for {
                    self.judge_holder(ks, key, now, out);
                }
            }
            Kind::ReadWrite(_) => {
                self.replaced(key, cause, now, out);
                self.set_deadline(key, look.expires);
            }
            // Waiters stay until the name is free; the holder has lost the lock.
            Kind::Foreign(_) => {
                self.replaced(key, cause, now, out);
                if waited_for {
                    self.set_deadline(key, look.expires);
                    self.entry_or_new(key).foreign = look.expires.is_some();
                }
            }
        }
        self.tidy(key);
    }

    /// The key is there, but not as the lock that was known.
    fn replaced(&mut self, key: &Key, cause: Cause, now: Now, out: &mut Effects) {
        self.ended(key, cause.max(Cause::Removed), now, out);
    }

    /// Somebody who waits may have become the holder by another way than ours.
    fn judge_holder<K: Keyspace>(&mut self, ks: &mut K, key: &Key, now: Now, out: &mut Effects) {
        for holder in ks.holders(key) {
            let known = self.by_owner.get_key_value(holder.owner.as_slice());
            if let Some(owner) = known.map(|(owner, _)| owner.clone()) {
                let look = ks.look(key, &owner);
                self.judge(key, &owner, look, now, out);
            }
        }
    }

    /// The key is gone: tells how its holds ended and forgets them. Whether the
    /// server took it, by expiry or eviction.
    pub(super) fn ended(&mut self, key: &Key, cause: Cause, now: Now, out: &mut Effects) -> bool {
        let Some(entry) = self.entry(key) else {
            return false;
        };
        let overdue = entry.deadline.is_some_and(|at| at < now.wall_ms());
        let was_held = !entry.foreign && (entry.deadline.is_some() || entry.holder.is_some());
        let event = match cause {
            Cause::Expired => Some(Event::Expired),
            Cause::Evicted => Some(Event::Evicted),
            Cause::Unknown if overdue => Some(Event::Expired),
            Cause::Unknown | Cause::Removed => None,
        };
        if !was_held {
            self.forget_holder(key);
            return false;
        }
        if let Some(event) = event {
            out.push(Effect::Tell {
                key: key.clone(),
                event,
            });
        }
        self.forget_holder(key);
        event.is_some()
    }
}
