//! What happens when a lease runs out, and when a key changes under us.
//!
//! A key's event is a hint, the key is the truth: whatever was heard, the key is
//! looked at again. The hint only says why a key that is gone went.

use super::{Core, Effect, Effects, Event, Key, Keyspace, Kind, Now};

/// Why a key that is gone went, as far as we were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody told: its deadline decides whether the lease ran out.
    Unknown,
    /// The server expired it.
    Expired,
    /// The server evicted it for want of memory.
    Evicted,
    /// Somebody's command removed, moved or replaced it.
    Removed,
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
                if known.is_some() && look.holds == 0 {
                    self.forget_holder(key);
                }
                self.set_deadline(key, look.expires);
                if waited_for {
                    self.judge_holder(ks, key, now, out);
                }
            }
            Kind::ReadWrite(_) => {
                self.forget_holder(key);
                self.set_deadline(key, look.expires);
            }
            // Waiters stay until the name is free; the holder has lost the lock.
            Kind::Foreign(_) => {
                self.forget_holder(key);
                if waited_for {
                    self.set_deadline(key, look.expires);
                }
            }
        }
        self.tidy(key);
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
        let was_held = entry.deadline.is_some() || entry.holder.is_some();
        let event = match cause {
            Cause::Expired => Some(Event::Expired),
            Cause::Evicted => Some(Event::Evicted),
            Cause::Unknown if overdue => Some(Event::Expired),
            Cause::Unknown | Cause::Removed => None,
        };
        if !was_held {
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
