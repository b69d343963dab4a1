//! What was noted is taken in, and looked at.

use crate::lock::{closed, leaving, moved, reconcile, take_back};
use crate::lock::{Decision, Key, Note};

/// Waits of so many keys of a connection that closes end at once, the rest in slices.
const FEW: usize = 16;

/// Takes in what was noted, in order. What has moved is known under its new name
/// from then on; the rest is due for a [`review`].
pub fn hear(d: &mut Decision<'_>, notes: impl IntoIterator<Item = Note>) {
    for note in notes {
        match note {
            Note::Changed(key, cause) => d.core.heard.of(key, cause),
            Note::Reader(key, owner, cause) => d.core.heard.of_reader(key, owner, cause),
            Note::Renamed(from, to) => {
                if d.core.heard.is_new_here(&d.core.locks, &from) {
                    leaving::know_who_waits(d.core, &from);
                }
                d.core.heard.renamed(&mut d.core.locks, &from, &to);
                moved::renamed(d, &from, &to);
            }
            Note::Swapped(one, other) => {
                d.core.heard.swapped(one, other);
                moved::swapped(d, one, other);
                for db in [one, other] {
                    d.core.heard.begin_exchanged(&mut d.core.locks, db);
                }
            }
            Note::Replaced(db, cause) => {
                d.core.heard.begin_sweep(&mut d.core.locks, db, cause);
            }
            Note::Closed(client) => {
                closed::cut_off(d, client, FEW);
                d.core.heard.closed.insert(client);
            }
            Note::Lost(waiter) => d.core.heard.lost.push(waiter),
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
    while let Some(client) = d.core.heard.closed.first().copied() {
        left = left.saturating_sub(closed::closed(d, client, left));
        if d.core.is_bound(client) {
            break;
        }
        d.core.heard.closed.remove(&client);
    }
    for waiter in std::mem::take(&mut d.core.heard.lost) {
        take_back::take_back(d, waiter);
    }
}
