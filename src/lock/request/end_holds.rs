//! Holds of an owner end, by its will or with its connection.

use crate::lock::modes::modes;
use crate::lock::{leases, reconcile, watchdog};
use crate::lock::{Cause, Decision, Event, Key, Kind, Lease, Look, Mode, Owner, Whom, Write};

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
            d.left_free(key, whom);
            return;
        }
        reconcile::shorten(d, key);
        d.look_later(key);
    }
}

/// Fewer holds for an owner that keeps some. The lease stays.
fn count_down(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode, holds: i64, left: i64) {
    d.count(key, owner, mode, left, left.saturating_sub(holds));
    if mode == Mode::Read {
        leases::end(d, key, owner, left.saturating_add(1)..=holds);
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
        d.write(key, Write::SetMode(Mode::Read));
        d.wake(key, Whom::AllShared);
    }
}

fn end_reads(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look) {
    drop_field(d, key, owner, Mode::Read, look);
    leases::end(d, key, owner, 1..=look.holds);
    reconcile::stop_reading(d, key, owner);
}

fn drop_left_over(d: &mut Decision<'_>, key: &Key, owner: &Owner) {
    let (owner, mode) = (owner.clone(), Mode::Exclusive);
    d.write(key, Write::Drop { owner, mode });
    let hold = d.core.locks.take_plain(key);
    if let Some(hold) = hold {
        watchdog::on_lost_with(d.core, key, &hold);
    }
}

/// There are holds of other owners, or in other modes.
fn left_shared(look: &Look) -> bool {
    matches!(look.kind, Kind::ReadWrite(_))
}

/// Removes a field of a read/write lock, unless it is the last and the hash goes
/// with it.
fn drop_field(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode, look: &Look) {
    if look.fields > 1 {
        let owner = owner.clone();
        d.write(key, Write::Drop { owner, mode });
    }
}

/// How many holds the owner has in a mode in which it has some.
pub fn count(look: &Look, mode: Mode) -> i64 {
    match mode {
        Mode::Exclusive | Mode::Read => look.holds,
        Mode::Write => look.writes,
    }
}

/// Frees a held lock and hands it on.
pub fn free(d: &mut Decision<'_>, key: &Key, event: Event, whom: Whom) {
    d.write(key, Write::Delete);
    d.tell(key, event);
    for hold in d.core.locks.forget_holders(key) {
        watchdog::on_lost(d, key, &hold);
    }
    d.left_free(key, whom);
}
