//! Holds of an owner that reads or writes end.

use super::expire::{expire_reader, stop_reading, sweep};
use super::learn_one::shorten;
use super::lease_keys;
use crate::lock::modes::modes;
use crate::lock::table::Hold;
use crate::lock::{
    watchdog, Cause, Decision, Event, Key, Lease, Look, Mode, Owner, Reason, WakeTarget, Write,
};

/// So many of them in each of these modes, as far as it has them.
pub fn end(d: &mut Decision<'_>, key: &Key, owner: &Owner, mut look: Look, ending: &[(Mode, i64)]) {
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
            expire_reader(d, key, owner, Cause::Expired);
        }
    }
    if told && d.ks.look(key, &[]).kind.is_read_write() {
        if sweep(d, key, stays) {
            shorten(d, key);
            d.look_later(key);
        } else {
            d.left_free(key, whom);
        }
    }
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
    lease_keys::end(d, key, owner, left.saturating_add(1)..=holds);
    // Others give each hold a lease of its own.
    let lease = d.ks.look(key, owner).lease;
    d.core.locks.change_shared(key, |shared| {
        shared.change(owner, |hold| {
            hold.holds = left;
            if lease != Lease::Gone {
                hold.lease = lease;
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
            lease_keys::end(d, key, owner, 1..=look.holds);
            stop_reading(d, key, owner, Reason::Deleted);
        }
        Mode::Write => d.core.locks.change_shared(key, |shared| {
            gone = shared.change(owner, Hold::stop_writing);
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
