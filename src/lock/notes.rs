//! Notes are read in two parts. First all of them are heard: what has moved is
//! moved, and of each key remains what weighs most. Then the keys are looked at, some
//! at a time where there are very many ([`review`]). A note is older than
//! anything that is done because of it, so whatever has ended is ended before any
//! lock is handed on, as far as it is looked at in one go. Until a key's time comes it
//! is as if nothing had been heard; only whoever looks at the key itself finds what
//! was heard of it taken into account ([`reconcile::attend`]).

use super::{closed, leaving, moved, reconcile, take_back};
use super::{Cause, Decision, Key, Note};

/// Takes in what was noted, in order. What has moved is known under its new name
/// from then on; the rest is due for a [`review`].
pub fn hear(d: &mut Decision<'_>, notes: impl IntoIterator<Item = Note>) {
    for note in notes {
        match note {
            Note::Changed(key, cause) => d.core.heard.of(key, cause),
            Note::Reader(key, owner, cause) => d.core.heard.of_reader(key, owner, cause),
            Note::Renamed(from, to) => {
                let swept = d.core.heard.take_swept(&mut d.core.locks, &from);
                d.core.heard.renamed(&from, &to, swept);
                moved::renamed(d, &from, &to);
            }
            Note::Swapped(one, other) => {
                d.core.heard.swapped(one, other);
                moved::swapped(d, one, other);
                for db in [one, other] {
                    let locks = &mut d.core.locks;
                    d.core.heard.begin_sweep(locks, Some(db), Cause::Unknown);
                }
            }
            Note::Replaced(db, cause) => {
                d.core.heard.begin_sweep(&mut d.core.locks, db, cause);
            }
            Note::Closed(client) => {
                leaving::stop_waiting(d.core, &mut d.work, client);
                d.core.heard.of_closed(client);
            }
            Note::Lost(waiter) => d.core.heard.of_lost(waiter),
        }
    }
}

/// Looks at these keys, and when nothing else was heard of any key at connections
/// that are closed, at most at so many of their holds, and at lost grants. What has
/// become free is handed on when the decision is drained.
pub fn review(d: &mut Decision<'_>, keys: &[Key], most: usize) {
    d.work.append(std::mem::take(&mut d.core.due));
    for key in keys {
        reconcile::attend(d, key);
    }
    if !d.core.heard.has_no_single_key() {
        return;
    }
    let mut left = most;
    while let Some(client) = d.core.heard.closed().front().copied() {
        left = left.saturating_sub(closed::closed(d, client, left));
        if d.core.watchdogs.has(client) {
            break;
        }
        d.core.heard.forget_first_closed();
    }
    for waiter in d.core.heard.take_lost() {
        take_back::take_back(d, waiter);
    }
}
