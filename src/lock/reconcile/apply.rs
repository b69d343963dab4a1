//! Changes what is known of a key: the one place that does so because of a look.

use super::diff::Change;
use super::merge::{merge, Merged};
use super::over::{self, Over};
use super::readers;
use super::Cause;
use crate::lock::table::{Entry, Hold};
use crate::lock::{watchdog, Decision, Key, Kind, Look, Mode, Owner, Write};

/// Who looked where.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub key: &'a Key,
    pub owner: &'a [u8],
}

/// Applies a change. Whether something was written, or is unknown now, so that another
/// look is due.
pub fn apply(
    d: &mut Decision<'_>,
    at: At<'_>,
    found: &Look,
    change: Change,
    over: &mut Over,
) -> bool {
    let At { key, owner } = at;
    match change {
        Change::Over { cause, free } => {
            over.add(over::end(d, key, cause, free));
            over.revived || !free
        }
        Change::Emptied => {
            d.write(Write::Delete { key: key.clone() });
            over.add(over::end(d, key, Cause::Unknown, true));
            true
        }
        Change::ReaderOver => {
            readers::expire_reader(d, key, &Owner::from(owner), Cause::Unknown);
            true
        }
        Change::Holders if found.kind == Kind::Plain => {
            learn_plain(d, key, found);
            false
        }
        Change::Holders => learn_shared(d, key, found, over),
        Change::Ends(None) if found.kind == Kind::Plain => {
            d.core.locks.set_deadline(key, found.expires);
            false
        }
        Change::Ends(its) => {
            d.core.locks.change_shared(key, |shared| {
                shared.expires = found.expires;
                shared.change(owner, |party| {
                    if let Some((lease, holds)) = its {
                        party.lease = lease;
                        party.holds = holds;
                    }
                });
            });
            false
        }
    }
}

/// Reads who holds a plain lock.
pub fn learn_plain(d: &mut Decision<'_>, key: &Key, found: &Look) {
    let holder = d.ks.holders(key).into_iter().next();
    if let Some(holder) = holder.filter(|holder| holder.mode == Mode::Exclusive) {
        let owner = Owner::from(holder.owner);
        d.core.locks.replace_plain(key, Hold::found(owner.clone()));
        d.joined(key, &owner);
    }
    d.core.locks.set_deadline(key, found.expires);
}

/// Reads all holders of a read/write lock. Readers whose lease keys are gone are removed,
/// and so is what was known and is not there.
fn learn_shared(d: &mut Decision<'_>, key: &Key, found: &Look, over: &mut Over) -> bool {
    let holders = d.ks.holders(key);
    let known = d.core.locks.get(key);
    if holders.len() != found.fields {
        // No lock, or no more: a field is no count of holds.
        if known.is_some_and(Entry::is_held) {
            over.add(over::end(d, key, Cause::Removed, false));
        }
        return false;
    }
    let Some(merged) = merge(known, holders, found, d.now) else {
        return false;
    };
    let Merged {
        shared,
        joined,
        fewer,
        vanished,
        dead,
        plain_is_gone,
    } = merged;
    if shared.is_half() {
        d.core.look_again(key);
    }
    d.core.locks.change_shared(key, |known| *known = shared);
    for (owner, mode) in fewer {
        watchdog::on_lost_in(d, key, &owner, mode);
    }
    for party in vanished {
        over::party_ended(d, key, &party, Cause::Unknown);
    }
    if plain_is_gone {
        if let Some(hold) = d.core.locks.take_plain(key) {
            watchdog::on_lost(d, key, &hold);
        }
    }
    let wrote = !dead.is_empty();
    for owner in dead {
        readers::expire_reader(d, key, &owner, Cause::Unknown);
    }
    d.core.locks.tidy(key);
    for owner in joined {
        d.joined(key, &owner);
    }
    d.look_later(key);
    wrote
}
