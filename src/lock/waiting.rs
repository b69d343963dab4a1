//! The queue of a lock: who waits, and how the lock goes to the next.
//!
//! A grant is not done when it is decided. Its reply leaves the server a moment
//! later, and until then the client can be killed or unblocked by somebody else.
//! So a grant is remembered until the shell says that the reply is out
//! ([`Core::confirm`]) or that it never will be ([`Core::take_back`]), exactly one
//! of them.

use super::{
    Ask, Bytes, Core, Effect, Effects, Key, Keyspace, Kind, Look, Now, Outcome, Refusal, Wait,
    WaiterId,
};

/// A request that stands in a queue.
#[derive(Debug)]
pub struct Waiter {
    pub key: Key,
    pub owner: Bytes,
    pub lease: i64,
    pub once: bool,
    /// Since when it waits, monotonic us.
    pub since: i64,
    /// When its BLOCK time is over, monotonic us.
    pub until: Option<i64>,
}

/// A grant on its way to its client.
#[derive(Debug)]
pub struct Grant {
    pub key: Key,
    pub owner: Bytes,
    pub token: i64,
}

impl Core {
    /// Puts a request at the end of the queue.
    pub(super) fn enqueue(&mut self, key: Key, ask: &Ask<'_>, wait: Wait, now: Now) -> WaiterId {
        self.last_waiter = self.last_waiter.saturating_add(1);
        let id = self.last_waiter;
        let owner = Bytes::from(ask.owner);
        let until = (wait.ms > 0).then(|| now.until(wait.ms));
        self.entry_or_new(&key).queue.insert(id);
        self.by_owner.entry(owner.clone()).or_default().insert(id);
        self.timeouts.change(&id, None, until);
        let waiter = Waiter {
            key,
            owner,
            lease: ask.lease,
            once: ask.once,
            since: now.mono_us,
            until,
        };
        self.waiters.insert(id, waiter);
        id
    }

    /// Takes a request out of the queue, however it ended. Harmless if it is not
    /// in one any more.
    pub fn leave(&mut self, id: WaiterId) {
        self.dequeue(id);
    }

    fn dequeue(&mut self, id: WaiterId) -> Option<Waiter> {
        let waiter = self.waiters.remove(&id)?;
        self.timeouts.change(&id, waiter.until, None);
        if let Some(ids) = self.by_owner.get_mut(&waiter.owner) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_owner.remove(&waiter.owner);
            }
        }
        if let Some(entry) = self.entry_mut(&waiter.key) {
            entry.queue.remove(&id);
        }
        self.tidy(&waiter.key);
        Some(waiter)
    }

    /// Ends the waits whose BLOCK time is over.
    pub fn time_out(&mut self, now: Now, most: usize, out: &mut Effects) {
        for id in self.timeouts.before(now.mono_us.saturating_add(1), most) {
            self.dequeue(id);
            out.push(Effect::Answer {
                waiter: id,
                outcome: Outcome::TimedOut,
            });
        }
    }

    /// Gives a free lock to the head of its queue: the new holder, and the key as
    /// that holder sees it. `None` when nobody waits.
    pub(super) fn hand_on(
        &mut self,
        key: &Key,
        now: Now,
        out: &mut Effects,
    ) -> Option<(Bytes, Look)> {
        let (head, waiter) = loop {
            let head = *self.entry(key)?.queue.first()?;
            let waiter = self.dequeue(head)?;
            // After a stall of the server: its time was over before the lock
            // became free.
            if waiter.until.is_none_or(|until| until > now.mono_us) {
                break (head, waiter);
            }
            out.push(Effect::Answer {
                waiter: head,
                outcome: Outcome::TimedOut,
            });
        };
        let token = self.take(key, waiter.owner.clone(), waiter.lease, now, out);
        self.granted(head, key, &waiter.owner, token, out);
        let look = Look {
            kind: Kind::Plain,
            holds: 1,
            shared: None,
            expires: Some(now.deadline(waiter.lease)),
            ran_out: false,
        };
        let look = self.judge(key, &waiter.owner, look, now, out);
        Some((waiter.owner, look))
    }

    /// An owner holds the lock now: its other requests for it nest at once, or
    /// are refused if they said ONCE. The key as it is then.
    pub(super) fn judge(
        &mut self,
        key: &Key,
        owner: &Bytes,
        mut look: Look,
        now: Now,
        out: &mut Effects,
    ) -> Look {
        let same = |id: &WaiterId| self.waiters.get(id).is_some_and(|w| w.key == *key);
        let ids: Vec<WaiterId> = match self.by_owner.get(owner) {
            Some(ids) => ids.iter().copied().filter(same).collect(),
            None => return look,
        };
        for id in ids {
            let Some(waiter) = self.dequeue(id) else {
                continue;
            };
            if waiter.until.is_some_and(|until| until <= now.mono_us) {
                out.push(Effect::Answer {
                    waiter: id,
                    outcome: Outcome::TimedOut,
                });
                continue;
            }
            let refusal = if waiter.once {
                Refusal::Held {
                    key: key.clone(),
                    owner: owner.clone(),
                }
            } else {
                match self.nest(key, owner, waiter.lease, look, now, out) {
                    Ok((token, then)) => {
                        look = then;
                        self.granted(id, key, owner, token, out);
                        continue;
                    }
                    Err(refusal) => refusal,
                }
            };
            out.push(Effect::Answer {
                waiter: id,
                outcome: Outcome::Refused(refusal),
            });
        }
        look
    }

    fn granted(&mut self, id: WaiterId, key: &Key, owner: &Bytes, token: i64, out: &mut Effects) {
        let grant = Grant {
            key: key.clone(),
            owner: owner.clone(),
            token,
        };
        self.grants.insert(id, grant);
        out.push(Effect::Answer {
            waiter: id,
            outcome: Outcome::Granted(token),
        });
    }

    /// The reply of a grant is out: it stands.
    pub fn confirm(&mut self, id: WaiterId) {
        self.grants.remove(&id);
    }

    /// The reply of a grant will never reach its client: the hold ends as if it
    /// were released, and the lock goes to the next.
    pub fn take_back<K: Keyspace>(
        &mut self,
        ks: &mut K,
        now: Now,
        id: WaiterId,
        out: &mut Effects,
    ) {
        let Some(grant) = self.grants.remove(&id) else {
            return;
        };
        let look = self.look(ks, &grant.key, &grant.owner, now, out);
        let known = self
            .entry(&grant.key)
            .and_then(|entry| entry.hold(&grant.owner))
            .is_some_and(|hold| hold.token == grant.token);
        if look.kind != Kind::Plain || look.holds < 1 || !known {
            return;
        }
        let left = look.holds.saturating_sub(1);
        if left > 0 {
            self.unnest(&grant.key, &grant.owner, left, out);
        } else {
            self.free(&grant.key, super::Event::Released, false, now, out);
        }
    }
}
