//! ACQUIRE: take a free lock, nest, be refused, or wait.

use super::{
    Bytes, Cause, Core, Effect, Effects, Event, Key, Keyspace, Kind, Look, Now, Refusal, WaiterId,
};

/// A request for a plain lock.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub db: i32,
    pub name: &'a [u8],
    pub owner: &'a [u8],
    /// The lease in ms, from the moment of the grant.
    pub lease: i64,
    /// Refuse to nest.
    pub once: bool,
    /// How to wait if the lock is held; `None`: do not.
    pub wait: Option<Wait>,
}

/// How a request waits.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// For so many ms; 0: for ever.
    pub ms: i64,
}

/// What became of a request that was not in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The owner has the lock; the fencing token.
    Granted(i64),
    /// Somebody else has it, and the request does not wait.
    Refused,
    /// The request stands in the queue under this number.
    Waits(WaiterId),
}

impl Core {
    /// Acquires a plain lock, or waits for it. In order of arrival: a free lock
    /// with waiters goes to the first of them, not to the request.
    pub fn acquire<K: Keyspace>(
        &mut self,
        ks: &mut K,
        now: Now,
        ask: &Ask<'_>,
        out: &mut Effects,
    ) -> Result<Verdict, Refusal> {
        let key = self.key(ask.db, ask.name);
        let look = self.look(ks, &key, ask.owner, now, out);
        match look.kind {
            Kind::Foreign(why) => Err(Refusal::NotALock { key, why }),
            Kind::Free => {
                let owner = Bytes::from(ask.owner);
                Ok(Verdict::Granted(
                    self.take(&key, owner, ask.lease, now, out),
                ))
            }
            Kind::Plain if look.holds > 0 => {
                let owner = Bytes::from(ask.owner);
                if ask.once {
                    return Err(Refusal::Held { key, owner });
                }
                let (token, _) = self.nest(&key, &owner, ask.lease, look, now, out)?;
                Ok(Verdict::Granted(token))
            }
            Kind::Plain | Kind::ReadWrite(_) => {
                // A lock found after a restart, or one that a script took, is
                // watched from the moment rlock touches it.
                self.set_deadline(&key, look.expires);
                if let Some(held_for) = look.shared {
                    let owner = Bytes::from(ask.owner);
                    return Err(Refusal::OtherMode {
                        key,
                        owner,
                        held_for,
                    });
                }
                Ok(match ask.wait {
                    Some(wait) => Verdict::Waits(self.enqueue(key, ask, wait, now)),
                    None => Verdict::Refused,
                })
            }
        }
    }

    /// The key as `owner` sees it, after what is due on it has happened: an
    /// ended hold is told of, and a free lock goes to the head of its queue.
    pub(super) fn look<K: Keyspace>(
        &mut self,
        ks: &mut K,
        key: &Key,
        owner: &[u8],
        now: Now,
        out: &mut Effects,
    ) -> Look {
        let look = ks.look(key, owner);
        match look.kind {
            Kind::Free if !self.knows(key.db, &key.name) => look,
            Kind::Free => {
                self.ended(key, Cause::seen_by(look), now, out);
                match self.hand_on(key, now, out) {
                    Some((holder, look)) if *holder == *owner => look,
                    Some((_, look)) => Look { holds: 0, ..look },
                    None => look,
                }
            }
            // SET over a lock is no event that rlock hears.
            Kind::Foreign(_) if self.entry(key).is_some_and(|entry| !entry.foreign) => {
                self.ended(key, Cause::Removed, now, out);
                look
            }
            Kind::Plain | Kind::ReadWrite(_) | Kind::Foreign(_) => look,
        }
    }

    /// The free key becomes the lock of `owner`; the token.
    pub(super) fn take(
        &mut self,
        key: &Key,
        owner: Bytes,
        lease: i64,
        now: Now,
        out: &mut Effects,
    ) -> i64 {
        let token = self.tokens.next(now);
        let at = now.deadline(lease);
        out.push(Effect::Take {
            key: key.clone(),
            owner: owner.clone(),
            at,
        });
        out.push(Effect::Tell {
            key: key.clone(),
            event: Event::Acquired,
        });
        self.set_holder(key, owner, token, Some(at), now);
        token
    }

    /// One more hold for an owner that has the lock: the token of the hold under
    /// way, and the key as it is then. The lease is lengthened to at least
    /// `lease` from now, never shortened; a lock without one stays without.
    pub(super) fn nest(
        &mut self,
        key: &Key,
        owner: &Bytes,
        lease: i64,
        look: Look,
        now: Now,
        out: &mut Effects,
    ) -> Result<(i64, Look), Refusal> {
        let Some(holds) = look.holds.checked_add(1) else {
            return Err(Refusal::TooManyHolds {
                key: key.clone(),
                owner: owner.clone(),
            });
        };
        out.push(Effect::Count {
            key: key.clone(),
            owner: owner.clone(),
            holds,
            by: 1,
        });
        let expires = look.expires.map(|at| at.max(now.deadline(lease)));
        if let Some(at) = expires.filter(|_| expires != look.expires) {
            out.push(Effect::ExpireAt {
                key: key.clone(),
                at,
            });
        }
        out.push(Effect::Tell {
            key: key.clone(),
            event: Event::Acquired,
        });
        self.set_deadline(key, expires);
        let known = self.entry(key).and_then(|entry| entry.hold(owner));
        let token = match known {
            Some(hold) => hold.token,
            None => {
                let token = self.tokens.next(now);
                self.set_holder(key, owner.clone(), token, expires, now);
                token
            }
        };
        let look = Look {
            holds,
            expires,
            ..look
        };
        Ok((token, look))
    }
}
