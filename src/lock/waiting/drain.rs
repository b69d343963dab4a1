//! A decision is drained: who can have what it waits for gets it.

use super::judge;

use crate::lock::grant::{self, Tried};
use crate::lock::head::{self, Next};
use crate::lock::kind::permits::is_short;
use crate::lock::queue::Portion;
use crate::lock::table::Entry;
use crate::lock::{reconcile, subscribers};
use crate::lock::{Decision, Key, Kind, Mode, WakeTarget};

/// Waiters with so many keys are looked at in one decision: readers that may all enter, say.
/// The rest is as if nothing had happened yet.
const MOST_TRIES: usize = 128;

/// Gives a key to those at the head of its queue who can have it now, as far as
/// tries are left.
fn serve(d: &mut Decision<'_>, key: &Key, tries: &mut Portion) {
    // The timer may be late for who holds it, and comes to waits that are over first.
    reconcile::end_leases(d, key);
    let mut permits_given = false;
    while let Some(next) = head::next(d.core, key) {
        if tries.is_over() {
            d.core.due.dirty.insert(key.clone());
            break;
        }
        let id = match next {
            // What holds it up is another key, and that is as it was.
            Next::Waiter(id) if d.lacks(id).is_some_and(|other| other != key) => break,
            Next::Waiter(id) => id,
            Next::Subscribers if subscribers::offer(d, key) => break,
            Next::Subscribers => continue,
        };
        // Who nests in what was granted a moment ago may have come before.
        let waiter = d.core.queues.get(id);
        let mode = waiter.map(|waiter| waiter.want.mode);
        let keys = waiter.map_or(1, |waiter| waiter.keys.len());
        let rank = waiter.map(|waiter| waiter.rank.clone());
        if judge::nest_first(d, rank.as_ref()) {
            tries.takes(1);
            continue;
        }
        // As nearly always behind a grant of permits: it need not be tried to know.
        let tried = if permits_given && is_short(d, key, id) {
            Tried::Waits
        } else {
            grant::try_grant(d, id)
        };
        // One that waits on is not tried again for each of its keys.
        tries.takes(if tried == Tried::Waits { 1 } else { keys });
        match tried {
            Tried::Waits if judge::judge_permits(d, key) => {}
            Tried::Waits => break,
            // Nobody else can have it now, and what its owner waits for nests by itself.
            Tried::Has if !mode.is_some_and(Mode::is_for_several) => break,
            Tried::Has => permits_given = mode == Some(Mode::Permits),
            Tried::Leaves => {}
        }
    }
    d.work.dirty.remove(key);
}

/// Drains the decision under way: first who can have what it waits for gets it, then
/// nobody may wait in a cycle.
pub fn drain(d: &mut Decision<'_>) {
    // As nearly always where nobody waits.
    if d.work.is_empty() {
        return;
    }
    let mut tries = Portion::new(MOST_TRIES);
    let before = d.size();
    loop {
        if tries.is_over() || d.is_long(before) {
            // The rest has a decision of its own, after others had a turn.
            d.core.due.append(std::mem::take(&mut *d.work));
            return;
        }
        if let Some(key) = d.work.dirty.pop_first() {
            if d.ks.is_at_hand(&key) {
                serve(d, &key, &mut tries);
            } else {
                d.core.due.dirty.insert(key);
            }
            continue;
        }
        tries.takes(1);
        if !judge::nest_first(d, None)
            && !judge::judge_upgrades(d)
            && !judge::judge_cycles(d)
            && !d.work.is_stirred()
        {
            break;
        }
    }
    while let Some((key, whom)) = d.work.freed.pop_first() {
        // As nearly always, it has gone to the next.
        let plain = d.core.locks.get(&key).and_then(Entry::plain);
        if plain.is_some() {
            continue;
        }
        let is_open = match d.ks.look(&key, &[]).kind {
            Kind::ReadWrite(Mode::Read) => {
                whom == WakeTarget::AllShared && !head::is_waited_for(d.core, &key)
            }
            found => found == Kind::Free,
        };
        if is_open {
            d.wake(&key, whom);
        }
    }
}
