//! RELEASE, RENEW and FORCE: end a hold, move its lease, end everybody's.

use super::ask::{Ended, Renewal};
use super::found::leases_looked_at;
use super::freed::left_free;
use super::modes::modes;
use super::{lease_keys, ready, reconcile, shared, watchdog};
use super::{
    Cause, ClientId, Core, Decision, Event, Key, Kind, Lease, Look, Mode, Owner, Refusal, Whom,
    Write, MOST_READS,
};

impl Core {
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
        let has = modes(self, key, owner, look);
        if has.has(mode) {
            return Ok(());
        }
        Err(Refusal::NotHeld {
            key: key.clone(),
            owner: Owner::from(owner),
            asked: mode,
            held_for: has.any(),
        })
    }
}

/// Ends the newest hold of the owner in a mode, or all of them; how many are
/// left. The last one frees the lock, which goes to the head of the queue in
/// this d.
pub fn release(d: &mut Decision<'_>, name: &[u8], ended: &Ended<'_>) -> Result<i64, Refusal> {
    let key = d.core.locks.key(ended.db, name);
    let look = ready::look(d, &key, ended.owner);
    release_one(d, &key, ended, look)
}

/// As `release`, but hands nothing on yet.
pub fn release_one(
    d: &mut Decision<'_>,
    key: &Key,
    ended: &Ended<'_>,
    look: Look,
) -> Result<i64, Refusal> {
    d.core.holds(key, ended.owner, ended.mode, &look)?;
    if ended.mode == Mode::Read {
        d.core.has_its_leases(key, ended.owner, &look)?;
    }
    let holds = count(&look, ended.mode);
    let by = if ended.all { holds } else { 1 };
    if look.kind == Kind::Plain && holds == by {
        let_go(d, key);
        return Ok(0);
    }
    let owner = Owner::from(ended.owner);
    if ended.all {
        watchdog::on_all_released(d.core, key, &owner, ended.mode);
    } else {
        watchdog::on_one_released(d.core, key, &owner, ended.mode, ended.client);
    }
    end_holds(d, key, &owner, look, &[(ended.mode, by)]);
    Ok(holds.saturating_sub(by))
}

/// Sets the lease to `lease` ms from now, shorter too.
pub fn renew(d: &mut Decision<'_>, name: &[u8], renewal: &Renewal<'_>) -> Result<(), Refusal> {
    let key = d.core.locks.key(renewal.db, name);
    let look = ready::look(d, &key, renewal.owner);
    d.core.holds(&key, renewal.owner, renewal.mode, &look)?;
    d.core.has_its_leases(&key, renewal.owner, &look)?;
    renew_one(d, &key, renewal, &look);
    Ok(())
}

/// Renews the lease of an owner that holds the lock.
pub fn renew_one(d: &mut Decision<'_>, key: &Key, renewal: &Renewal<'_>, look: &Look) {
    let owner = Owner::from(renewal.owner);
    shared::set_lease(d, key, &owner, look, d.now.deadline(renewal.lease));
    d.tell(key, Event::Renewed);
    if renewal.watch.is_some() {
        reconcile::know_plain(d, key, &owner, look);
    }
    let has = modes(d.core, key, &owner, look);
    let of = |mode| if has.has(mode) { count(look, mode) } else { 0 };
    let holds = [Mode::Exclusive, Mode::Write, Mode::Read].map(|mode| (mode, of(mode)));
    watchdog::on_renewed(d.core, key, &owner, &holds, renewal, d.now);
}

/// Frees the lock whoever holds it; whether it was held. The connection that
/// does it is not closed if a watchdog hold of its own is among those.
pub fn force(
    d: &mut Decision<'_>,
    db: i32,
    name: &[u8],
    client: Option<ClientId>,
) -> Result<bool, Refusal> {
    let key = d.core.locks.key(db, name);
    let look = ready::look(d, &key, &[]);
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
        let holders = d.ks.holders(&key);
        if holders.iter().any(|holder| holder.lease == Lease::Away) {
            return Err(Refusal::OnItsWay { key });
        }
        for holder in holders {
            if holder.mode == Mode::Read && holder.lease != Lease::Gone {
                let owner = Owner::from(holder.owner);
                // Not each of them where there are very many: what is left ends
                // by itself, and holds nothing.
                for index in leases_looked_at(holder.holds).filter(|i| *i <= MOST_READS) {
                    lease_keys::end(d, &key, &owner, index..=index);
                }
            }
        }
    }
    d.spared = client;
    let whom = if shared { Whom::AllShared } else { Whom::One };
    free(d, &key, Event::Forced, whom);
    d.spared = None;
    Ok(true)
}

/// So many holds of an owner end in each of these modes, as far as it has
/// them; the lock goes on if it was the last one.
pub fn end_holds(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    look: Look,
    ending: &[(Mode, i64)],
) {
    let mut look = look;
    let mut told = false;
    let mut whom = Whom::OneShared;
    // A last field stays, to go with the hash.
    let mut stays = 0;
    for (at, (mode, by)) in ending.iter().enumerate() {
        let has = modes(d.core, key, owner, &look);
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
                free(d, key, Event::Released, Whom::One);
                return;
            }
            Mode::Exclusive if left == 0 => drop_left_over(d, key, owner),
            _ if left > 0 => {
                count_down(d, key, owner, *mode, holds, left);
                if *mode == Mode::Exclusive && !shared {
                    d.core.locks.set_deadline(key, look.expires);
                }
            }
            Mode::Write => {
                stays = usize::from(look.fields == 1);
                end_writes(d, key, owner, &look);
                whom = Whom::AllShared;
            }
            _ => {
                stays = usize::from(look.fields == 1);
                end_reads(d, key, owner, &look);
            }
        }
        if !told {
            d.tell(key, Event::Released);
            told = true;
        }
        // Nothing more is asked of an owner that leaves.
        let leaves = left == 0 && at.saturating_add(1) == ending.len();
        look = d.ks.look(key, if leaves { &[] } else { owner });
        if *mode == Mode::Read && left > 0 && look.lease == Lease::Gone {
            // The lease of the holds that are left was over before.
            reconcile::expire_reader(d, key, owner, Cause::Expired);
            look = d.ks.look(key, owner);
        }
    }
    if told && left_shared(&look) {
        if !reconcile::sweep(d, key, stays) {
            left_free(d, key, whom);
            return;
        }
        reconcile::shorten(d, key);
        d.look_later(key);
    }
}

/// Fewer holds for an owner that keeps some. The lease stays.
fn count_down(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode, holds: i64, left: i64) {
    d.write(Write::Count {
        key: key.clone(),
        owner: owner.clone(),
        mode,
        holds: left,
        by: left.saturating_sub(holds),
    });
    if mode == Mode::Read {
        lease_keys::end(d, key, owner, left.saturating_add(1)..=holds);
        // Others give each hold a lease of its own.
        let lease = d.ks.look(key, owner).lease;
        d.core.locks.change_shared(key, |shared| {
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
fn end_writes(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look) {
    drop_field(d, key, owner, Mode::Write, look);
    let mut gone = None;
    d.core.locks.change_shared(key, |shared| {
        gone = shared.change(owner, |party| party.writes = false);
    });
    // Who lowered the count by hand has left more holds known than there were.
    if let Some(party) = gone {
        watchdog::on_lost_with(d.core, key, &party.hold);
    }
    if modes(d.core, key, owner, look).reads {
        d.write(Write::SetMode {
            key: key.clone(),
            mode: Mode::Read,
        });
        d.wake(key, Whom::AllShared);
    }
}

fn end_reads(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look) {
    drop_field(d, key, owner, Mode::Read, look);
    lease_keys::end(d, key, owner, 1..=look.holds);
    reconcile::stop_reading(d, key, owner);
}

fn drop_left_over(d: &mut Decision<'_>, key: &Key, owner: &Owner) {
    d.write(Write::Drop {
        key: key.clone(),
        owner: owner.clone(),
        mode: Mode::Exclusive,
    });
    let hold = d.core.locks.take_plain(key);
    if let Some(hold) = hold {
        watchdog::on_lost_with(d.core, key, &hold);
    }
}

/// The owner of a plain lock has released it.
fn let_go(d: &mut Decision<'_>, key: &Key) {
    d.write(Write::Delete { key: key.clone() });
    d.tell(key, Event::Released);
    for hold in d.core.locks.forget_holders(key) {
        watchdog::on_lost_with(d.core, key, &hold);
    }
    left_free(d, key, Whom::One);
}

/// Frees a held lock and hands it on.
fn free(d: &mut Decision<'_>, key: &Key, event: Event, whom: Whom) {
    d.write(Write::Delete { key: key.clone() });
    d.tell(key, event);
    for hold in d.core.locks.forget_holders(key) {
        watchdog::on_lost(d, key, &hold);
    }
    left_free(d, key, whom);
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
fn drop_field(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode, look: &Look) {
    if look.fields > 1 {
        d.write(Write::Drop {
            key: key.clone(),
            owner: owner.clone(),
            mode,
        });
    }
}
