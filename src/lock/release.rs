//! RELEASE, RENEW and FORCE: end a hold, move its lease, end everybody's.

use super::{Bytes, Core, Effect, Effects, Event, Key, Keyspace, Kind, Look, Now, Refusal};

impl Core {
    /// Ends the newest hold of the owner, or all of them; how many are left. The
    /// last one frees the lock, which goes to the head of the queue in this step.
    pub fn release<K: Keyspace>(
        &mut self,
        ks: &mut K,
        now: Now,
        (db, name): (i32, &[u8]),
        owner: &[u8],
        all: bool,
        out: &mut Effects,
    ) -> Result<i64, Refusal> {
        let key = self.key(db, name);
        let look = self.look(ks, &key, owner, now, out);
        held(&key, owner, look)?;
        let left = look.holds.saturating_sub(1);
        if all || left == 0 {
            self.free(&key, Event::Released, false, now, out);
            return Ok(0);
        }
        self.set_deadline(&key, look.expires);
        self.unnest(&key, &Bytes::from(owner), left, out);
        Ok(left)
    }

    /// Sets the lease to `lease` ms from now, shorter too.
    pub fn renew<K: Keyspace>(
        &mut self,
        ks: &mut K,
        now: Now,
        (db, name): (i32, &[u8]),
        owner: &[u8],
        lease: i64,
        out: &mut Effects,
    ) -> Result<(), Refusal> {
        let key = self.key(db, name);
        let look = self.look(ks, &key, owner, now, out);
        held(&key, owner, look)?;
        let at = now.deadline(lease);
        self.set_deadline(&key, Some(at));
        out.push(Effect::ExpireAt {
            key: key.clone(),
            at,
        });
        out.push(Effect::Tell {
            key,
            event: Event::Renewed,
        });
        Ok(())
    }

    /// Frees the lock whoever holds it; whether it was held.
    pub fn force<K: Keyspace>(
        &mut self,
        ks: &mut K,
        now: Now,
        (db, name): (i32, &[u8]),
        out: &mut Effects,
    ) -> Result<bool, Refusal> {
        let key = self.key(db, name);
        let look = self.look(ks, &key, &[], now, out);
        let shared = match look.kind {
            Kind::Free => return Ok(false),
            Kind::Foreign(why) => return Err(Refusal::NotALock { key, why }),
            Kind::Plain => false,
            Kind::ReadWrite(_) => true,
        };
        if look.expires.is_none() {
            return Err(Refusal::NoLease { key });
        }
        self.free(&key, Event::Forced, shared, now, out);
        Ok(true)
    }

    /// One hold less for an owner that keeps the lock. The lease stays.
    pub(super) fn unnest(&mut self, key: &Key, owner: &Bytes, left: i64, out: &mut Effects) {
        out.push(Effect::Count {
            key: key.clone(),
            owner: owner.clone(),
            holds: left,
            by: -1,
        });
        out.push(Effect::Tell {
            key: key.clone(),
            event: Event::Released,
        });
    }

    /// Frees a held lock and hands it on.
    pub(super) fn free(
        &mut self,
        key: &Key,
        event: Event,
        shared: bool,
        now: Now,
        out: &mut Effects,
    ) {
        out.push(Effect::Delete { key: key.clone() });
        out.push(Effect::Tell {
            key: key.clone(),
            event,
        });
        let waited_for = self.forget_holder(key);
        if !waited_for || self.hand_on(key, now, out).is_none() {
            out.push(Effect::Wake {
                key: key.clone(),
                shared,
            });
        }
    }
}

/// Refuses an owner that has no plain hold on the key.
fn held(key: &Key, owner: &[u8], look: Look) -> Result<(), Refusal> {
    match look.kind {
        Kind::Foreign(why) => Err(Refusal::NotALock {
            key: key.clone(),
            why,
        }),
        Kind::Plain if look.holds > 0 => Ok(()),
        _ => Err(Refusal::NotHeld {
            key: key.clone(),
            owner: Bytes::from(owner),
            held_for: look.shared,
        }),
    }
}
