//! RELEASE, RENEW and FORCE: end a hold, move its lease, end everybody's.

use super::keyspace::leases_looked_at;
use super::{
    Bytes, Cause, Core, Effect, Event, Key, Keyspace, Kind, Lease, Look, Mode, Refusal, Step, Whom,
    MOST_READS,
};

/// Which holds are to end.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub owner: &'a [u8],
    /// The connection that asks; 0: none.
    pub client: u64,
    pub mode: Mode,
    /// All of them, rather than the newest.
    pub all: bool,
}

/// What becomes of a lease.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    pub owner: &'a [u8],
    pub client: u64,
    pub mode: Mode,
    /// From now, ms.
    pub lease: i64,
    /// The owner's holds belong to the connection from now on.
    pub watch: bool,
}

impl Core {
    /// Ends the newest hold of the owner in a mode, or all of them; how many are
    /// left. The last one frees the lock, which goes to the head of the queue in
    /// this step.
    pub fn release<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        (db, name): (i32, &[u8]),
        ended: &Ended<'_>,
    ) -> Result<i64, Refusal> {
        let key = self.key(db, name);
        let look = self.look(step, &key, ended.owner);
        let left = self.release_one(step, &key, ended, look)?;
        self.settle_pending(step);
        Ok(left)
    }

    /// As `release`, but hands nothing on yet.
    pub(super) fn release_one<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        ended: &Ended<'_>,
        look: Look,
    ) -> Result<i64, Refusal> {
        self.holds(key, ended.owner, ended.mode, &look)?;
        if ended.mode == Mode::Read {
            self.has_its_leases(key, ended.owner, &look)?;
        }
        let holds = count(&look, ended.mode);
        let by = if ended.all { holds } else { 1 };
        if look.kind == Kind::Plain && holds == by {
            self.let_go(step, key);
            return Ok(0);
        }
        let owner = Bytes::from(ended.owner);
        let client = (!ended.all).then_some(ended.client);
        self.dropped(key, &owner, ended.mode, client);
        self.end_holds(step, key, &owner, look, &[(ended.mode, by)]);
        Ok(holds.saturating_sub(by))
    }

    /// Sets the lease to `lease` ms from now, shorter too.
    pub fn renew<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        (db, name): (i32, &[u8]),
        renewal: &Renewal<'_>,
    ) -> Result<(), Refusal> {
        let key = self.key(db, name);
        let look = self.look(step, &key, renewal.owner);
        self.holds(&key, renewal.owner, renewal.mode, &look)?;
        self.has_its_leases(&key, renewal.owner, &look)?;
        self.renew_one(step, &key, renewal, &look);
        Ok(())
    }

    /// Renews the lease of an owner that holds the lock.
    pub(super) fn renew_one<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        renewal: &Renewal<'_>,
        look: &Look,
    ) {
        let owner = Bytes::from(renewal.owner);
        self.set_lease(step, key, &owner, look, step.now.deadline(renewal.lease));
        self.tell(step, key, Event::Renewed);
        let client = renewal.watch.then_some(renewal.client);
        if client.is_some() {
            self.know_plain(step, key, &owner, look);
        }
        let has = self.modes(key, &owner, look);
        let of = |mode| if has.has(mode) { count(look, mode) } else { 0 };
        let holds = [Mode::Exclusive, Mode::Write, Mode::Read].map(|mode| (mode, of(mode)));
        self.rewatch((key, &owner), &holds, renewal.lease, client, step.now);
    }

    /// Frees the lock whoever holds it; whether it was held. The connection that
    /// does it is not closed if a watchdog hold of its own is among those.
    pub fn force<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        (db, name): (i32, &[u8]),
        client: u64,
    ) -> Result<bool, Refusal> {
        let key = self.key(db, name);
        let look = self.look(step, &key, &[]);
        let shared = match look.kind {
            Kind::Free => return Ok(false),
            Kind::Foreign(why) => return Err(Refusal::NotALock { key, why }),
            Kind::Plain => false,
            Kind::ReadWrite(_) => true,
        };
        if look.expires.is_none() {
            return Err(Refusal::NoLease { key });
        }
        if shared {
            let holders = step.ks.holders(&key);
            if holders.iter().any(|holder| holder.lease == Lease::Away) {
                return Err(Refusal::OnItsWay { key });
            }
            for holder in holders {
                if holder.mode == Mode::Read && holder.lease != Lease::Gone {
                    let owner = Bytes::from(holder.owner);
                    // Not each of them where there are very many: what is left ends
                    // by itself, and holds nothing.
                    for index in leases_looked_at(holder.holds).filter(|i| *i <= MOST_READS) {
                        end_leases(step, &key, &owner, index, index);
                    }
                }
            }
        }
        self.spared = client;
        let whom = if shared { Whom::AllShared } else { Whom::One };
        self.free(step, &key, Event::Forced, whom);
        self.spared = 0;
        self.settle_pending(step);
        Ok(true)
    }

    /// So many holds of an owner end in each of these modes, as far as it has
    /// them; the lock goes on if it was the last one.
    pub(super) fn end_holds<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        look: Look,
        modes: &[(Mode, i64)],
    ) {
        let mut look = look;
        let mut told = false;
        let mut whom = Whom::OneShared;
        // A last field stays, to go with the hash.
        let mut stays = 0;
        for (at, (mode, by)) in modes.iter().enumerate() {
            let has = self.modes(key, owner, &look);
            // Lease keys that are on another node end by themselves.
            let away = *mode == Mode::Read && look.lease == Lease::Away;
            if !has.has(*mode) || *by < 1 || away {
                continue;
            }
            let holds = count(&look, *mode);
            let left = holds.saturating_sub(*by).max(0);
            let shared = matches!(look.kind, Kind::ReadWrite(_));
            match mode {
                Mode::Exclusive if left == 0 && !shared => {
                    self.free(step, key, Event::Released, Whom::One);
                    return;
                }
                Mode::Exclusive if left == 0 => self.drop_left_over(step, key, owner),
                _ if left > 0 => {
                    self.count_down(step, key, owner, (*mode, holds, left));
                    if *mode == Mode::Exclusive && !shared {
                        self.set_deadline(key, look.expires);
                    }
                }
                Mode::Write => {
                    stays = usize::from(look.fields == 1);
                    self.end_writes(step, key, owner, &look);
                    whom = Whom::AllShared;
                }
                _ => {
                    stays = usize::from(look.fields == 1);
                    self.end_reads(step, key, owner, &look);
                }
            }
            if !told {
                self.tell(step, key, Event::Released);
                told = true;
            }
            // Nothing more is asked of an owner that leaves.
            let leaves = left == 0 && at.saturating_add(1) == modes.len();
            look = step.ks.look(key, if leaves { &[] } else { owner });
            if *mode == Mode::Read && left > 0 && look.lease == Lease::Gone {
                // The lease of the holds that are left was over before.
                self.bury(step, key, owner, Cause::Expired);
                look = step.ks.look(key, owner);
            }
        }
        if told && left_shared(&look) {
            if !self.sweep(step, key, stays) {
                self.left_free(step, key, whom);
                return;
            }
            self.shorten(step, key);
            self.look_later(key);
        }
    }

    /// Fewer holds for an owner that keeps some. The lease stays.
    fn count_down<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        (mode, holds, left): (Mode, i64, i64),
    ) {
        step.write(Effect::Count {
            key: key.clone(),
            owner: owner.clone(),
            mode,
            holds: left,
            by: left.saturating_sub(holds),
        });
        if mode == Mode::Read {
            end_leases(step, key, owner, left.saturating_add(1), holds);
            // Others give each hold a lease of its own.
            let lease = step.ks.look(key, owner).lease;
            self.know_shared(key, |shared| {
                shared.change(owner, |party| {
                    party.holds = left;
                    if lease != Lease::Gone {
                        party.lease = lease;
                    }
                });
            });
        }
    }

    /// The writer writes no more; if it reads on, other readers may enter.
    fn end_writes<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        look: &Look,
    ) {
        drop_field(step, key, owner, Mode::Write, look);
        let mut gone = None;
        self.know_shared(key, |shared| {
            gone = shared.change(owner, |party| party.writes = false);
        });
        // Who lowered the count by hand has left more holds known than there were.
        if let Some(party) = gone {
            self.unwatch(key, &party.hold);
        }
        if self.modes(key, owner, look).reads {
            let (key, mode) = (key.clone(), Mode::Read);
            step.write(Effect::SetMode {
                key: key.clone(),
                mode,
            });
            let whom = Whom::AllShared;
            step.out.push(Effect::Wake { key, whom });
        }
    }

    fn end_reads<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        look: &Look,
    ) {
        drop_field(step, key, owner, Mode::Read, look);
        end_leases(step, key, owner, 1, look.holds);
        self.reads_no_more(step, key, owner);
    }

    fn drop_left_over<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, owner: &Bytes) {
        step.write(Effect::Drop {
            key: key.clone(),
            owner: owner.clone(),
            mode: Mode::Exclusive,
        });
        let hold = self.entry_mut(key).and_then(|entry| entry.plain.take());
        if let Some(hold) = hold {
            self.unwatch(key, &hold);
        }
    }

    /// The owner of a plain lock has released it.
    fn let_go<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key) {
        step.write(Effect::Delete { key: key.clone() });
        self.tell(step, key, Event::Released);
        for hold in self.forget_holders(key) {
            self.unwatch(key, &hold);
        }
        self.left_free(step, key, Whom::One);
    }

    /// Frees a held lock and hands it on.
    fn free<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, event: Event, whom: Whom) {
        step.write(Effect::Delete { key: key.clone() });
        self.tell(step, key, event);
        for hold in self.forget_holders(key) {
            self.lost(step, key, &hold);
        }
        self.left_free(step, key, whom);
    }

    /// The lock is free: it goes to those who wait when the decision is made, and
    /// whoever waits elsewhere learns of it if it is still to be had then.
    pub(super) fn left_free<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, whom: Whom) {
        if self.is_waited_for(key) {
            self.pending.insert(key.clone());
            self.left.insert(key.clone(), whom);
        } else {
            self.wake(step, key, whom);
        }
    }

    /// Refuses an owner that does not hold the key in this mode.
    pub(super) fn holds(
        &self,
        key: &Key,
        owner: &[u8],
        mode: Mode,
        look: &Look,
    ) -> Result<(), Refusal> {
        if let Kind::Foreign(why) = look.kind {
            let key = key.clone();
            return Err(Refusal::NotALock { key, why });
        }
        let has = self.modes(key, owner, look);
        if has.has(mode) {
            return Ok(());
        }
        Err(Refusal::NotHeld {
            key: key.clone(),
            owner: Bytes::from(owner),
            asked: mode,
            held_for: has.any(),
        })
    }
}

/// There are holds of other owners, or in other modes.
fn left_shared(look: &Look) -> bool {
    matches!(look.kind, Kind::ReadWrite(_))
}

/// How many holds the owner has in a mode in which it has some.
pub fn count(look: &Look, mode: Mode) -> i64 {
    match mode {
        Mode::Exclusive | Mode::Read => look.holds,
        Mode::Write => look.writes,
    }
}

/// Removes a field of a read/write lock, unless it is the last and the hash goes
/// with it.
fn drop_field<K: Keyspace>(
    step: &mut Step<'_, K>,
    key: &Key,
    owner: &Bytes,
    mode: Mode,
    look: &Look,
) {
    if look.fields > 1 {
        step.write(Effect::Drop {
            key: key.clone(),
            owner: owner.clone(),
            mode,
        });
    }
}

/// Removes the lease keys of a reader's holds from one number to another.
pub fn end_leases<K: Keyspace>(
    step: &mut Step<'_, K>,
    key: &Key,
    owner: &Bytes,
    first: i64,
    last: i64,
) {
    for index in first..=last.min(MOST_READS) {
        step.write(Effect::EndLease {
            key: key.clone(),
            owner: owner.clone(),
            index,
        });
    }
}
