//! Holds of an owner end, by its will or with its connection.

use crate::lock::modes::modes;
use crate::lock::table::Party;
use crate::lock::{leases, reconcile, watchdog};
use crate::lock::{
    Cause, Decision, Event, Key, Kind, Lease, Look, Mode, Owner, Reason, WakeTarget, Write,
};

/// So many holds of an owner end in each of these modes, as far as it has
/// them; the lock goes on if it was the last one.
pub fn end_holds(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    mut look: Look,
    ending: &[(Mode, i64)],
) {
    if matches!(look.kind, Kind::Permits(_)) {
        let of_permits = ending.iter().filter(|(mode, _)| *mode == Mode::Permits);
        let by = of_permits.fold(0, |sum: i64, (_, by)| sum.saturating_add(*by));
        return end_permits(d, key, owner, &look, by);
    }
    let mut told = false;
    let mut whom = WakeTarget::OneShared;
    // A last field stays, to go with the hash.
    let mut stays = 0;
    for (mode, by) in ending.iter().copied() {
        if told {
            look = d.ks.look(key, owner);
        }
        // Lease keys that are on another node end by themselves.
        let away = mode == Mode::Read && look.lease == Lease::Migrating;
        let holds = modes(d.core, key, owner, &look).count(mode);
        if holds < 1 || by < 1 || away {
            continue;
        }
        let left = holds.saturating_sub(by).max(0);
        let mut rest_is_over = false;
        if left > 0 {
            rest_is_over = count_down(d, key, owner, mode, holds, left);
            if look.kind == Kind::Plain {
                d.core.locks.set_deadline(key, look.expires);
            }
        } else if look.kind == Kind::Plain {
            for hold in d.free(key, Event::Released, WakeTarget::One) {
                watchdog::on_lost(d, key, hold, Reason::Deleted);
            }
            return;
        } else {
            stays = usize::from(mode != Mode::Exclusive && look.fields == 1);
            if stays == 0 {
                let owner = owner.clone();
                d.write(key, Write::Drop { owner, mode });
            }
            if mode == Mode::Write {
                whom = WakeTarget::AllShared;
            }
            end_mode(d, key, owner, mode, &look);
        }
        if !told {
            d.tell(key, Event::Released);
            told = true;
        }
        if rest_is_over {
            reconcile::expire_reader(d, key, owner, Cause::Expired);
        }
    }
    if told && matches!(d.ks.look(key, &[]).kind, Kind::ReadWrite(_)) {
        if reconcile::sweep(d, key, stays) {
            reconcile::shorten(d, key);
            d.look_later(key);
        } else {
            d.left_free(key, whom);
        }
    }
}

/// An owner gives back so many permits: they go to the next, and with the last of them the
/// lock is free.
fn end_permits(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look, by: i64) {
    if look.holds < 1 || by < 1 {
        return;
    }
    let left = look.holds.saturating_sub(by);
    reconcile::give_back(d, key, owner, look, by);
    d.tell(key, Event::Released);
    if left > 0 {
        d.core.locks.change_shared(key, |shared| {
            shared.change(owner, |party| party.set_permits(left, look.lease));
        });
    } else if let Some(party) = reconcile::forget_permits(d, key, owner) {
        watchdog::on_lost(d, key, party.hold, Reason::Deleted);
    }
    if left < 1 && look.fields == 1 {
        reconcile::drop_holders(d, key, Reason::Deleted);
        d.left_free(key, WakeTarget::One);
    }
    d.look_later(key);
}

/// Fewer holds for an owner that keeps some. The lease stays. Whether that of the
/// holds that are left was over before.
fn count_down(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    mode: Mode,
    holds: i64,
    left: i64,
) -> bool {
    d.count(key, owner, mode, left, left.saturating_sub(holds));
    if mode != Mode::Read {
        return false;
    }
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
    lease == Lease::Gone
}

/// An owner has no holds in this mode of a read/write lock any more.
fn end_mode(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode, look: &Look) {
    let mut gone = None;
    match mode {
        Mode::Exclusive | Mode::Permits => gone = d.core.locks.take_plain(key),
        Mode::Read => {
            leases::end(d, key, owner, 1..=look.holds);
            reconcile::stop_reading(d, key, owner, Reason::Deleted);
        }
        Mode::Write => d.core.locks.change_shared(key, |shared| {
            let party = shared.change(owner, Party::stop_writing);
            gone = party.map(|party| party.hold);
        }),
    }
    // Who lowered the count by hand has left more holds known than there were.
    if let Some(hold) = gone {
        watchdog::on_lost(d, key, hold, Reason::Deleted);
    }
    d.parted(key, owner);
    // A writer that reads on lets other readers in.
    if mode == Mode::Write && modes(d.core, key, owner, look).has(Mode::Read) {
        d.write(key, Write::SetMode(Mode::Read));
        d.wake(key, WakeTarget::AllShared);
    }
}
