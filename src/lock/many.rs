//! MACQUIRE, MRELEASE and MRENEW: several plain locks at once, all or none.
//!
//! A request that waits holds nothing. It stands in the queue of each of its keys
//! under one rank, and has them all when on each it is first and the key is free,
//! or its owner holds it already. So two of them never wait for each other, and a
//! key whose first waiter wants others too stays free for it: it is reserved.

use super::acquire::{How, Want};
use super::queue::Waiter;
use super::rank::Rank;
use super::stats::Counters;
use super::{Ask, Core, Key, Keyspace, Kind, Mode, Refusal, Renewal, Step, Verdict};
use super::{Bytes, Ended};

/// The most keys of one request.
pub const MOST_KEYS: usize = 1024;

impl Core {
    /// Acquires all of these locks, or waits for them; one token for all.
    pub fn acquire_many<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        names: &[&[u8]],
        ask: &Ask<'_>,
    ) -> Result<Verdict, Refusal> {
        let keys: Vec<Key> = names.iter().map(|name| self.key(ask.db, name)).collect();
        for key in &keys {
            let mut look = self.look(step, key, ask.owner);
            let how = self.may(step, key, ask.owner, Mode::Exclusive, &mut look)?;
            if ask.once && how == Some(How::Nest) {
                return Err(super::acquire::held(key, ask.owner));
            }
        }
        let want = Want {
            owner: Bytes::from(ask.owner),
            client: ask.client,
            mode: Mode::Exclusive,
            lease: ask.lease,
            watch: ask.watch,
        };
        let taken = match self.take_all(step, &keys, &want) {
            Err(Refusal::Vanished { .. }) => self.take_all(step, &keys, &want),
            done => done,
        };
        if let Some(token) = taken? {
            self.settle_pending(step);
            return Ok(Verdict::Granted(token));
        }
        Counters::up(&mut self.counters.contended);
        for key in &keys {
            let look = step.ks.look(key, &[]);
            if look.kind == Kind::Plain {
                self.set_deadline(key, look.expires);
            }
        }
        match ask.wait {
            Some(wait) => self.wait_for(step, keys, want, ask.once, wait),
            None => Ok(Verdict::Refused),
        }
    }

    /// Takes all keys if each is the owner's, or free and not waited for.
    fn take_all<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        keys: &[Key],
        want: &Want,
    ) -> Result<Option<i64>, Refusal> {
        let waiter = Waiter {
            keys: keys.to_vec(),
            want: want.clone(),
            once: false,
            rank: Rank::arrived(0),
            since: 0,
            until: None,
        };
        let Some(mut ways) = self.ways(step, 0, &waiter)? else {
            return Ok(None);
        };
        let fresh = self.fresh(step, want, &mut ways)?;
        let (token, _) = self.give_all(step, want, ways, fresh)?;
        Ok(Some(token))
    }

    /// Releases one plain hold on each key where the owner has one; on how many. None
    /// is handed on before all of them are released: what another request of the
    /// owner's gets by that it keeps.
    pub fn release_many<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        db: i32,
        names: &[&[u8]],
        ended: &Ended<'_>,
    ) -> Result<i64, Refusal> {
        for name in names {
            let key = self.key(db, name);
            let look = self.look(step, &key, ended.owner);
            if let Kind::Foreign(why) = look.kind {
                return Err(Refusal::NotALock { key, why });
            }
        }
        let mut released: i64 = 0;
        for name in names {
            let key = self.key(db, name);
            let look = self.see(step, &key, ended.owner);
            if self.release_one(step, &key, ended, look).is_ok() {
                released = released.saturating_add(1);
            }
        }
        self.settle_pending(step);
        Ok(released)
    }

    /// Renews the owner's lease on all keys, or on none if it lacks one.
    pub fn renew_many<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        db: i32,
        names: &[&[u8]],
        renewal: &Renewal<'_>,
    ) -> Result<(), Refusal> {
        let keys: Vec<Key> = names.iter().map(|name| self.key(db, name)).collect();
        for key in &keys {
            let look = self.look(step, key, renewal.owner);
            self.holds(key, renewal.owner, Mode::Exclusive, &look)?;
        }
        for key in &keys {
            let look = self.see(step, key, renewal.owner);
            self.renew_one(step, key, renewal, &look);
        }
        Ok(())
    }
}
