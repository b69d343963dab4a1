//! A decision is drained: who can have what it waits for gets it.

use super::judge;

use crate::lock::grant::{self, Tried};
use crate::lock::head::{self, Next};
use crate::lock::subscribers;
use crate::lock::table::Entry;
use crate::lock::{Decision, Key, Kind, Mode, Whom};

/// So many waiters are looked at in one decision: readers that may all enter, say.
/// The rest is as if nothing had happened yet.
const MOST_TRIES: u32 = 128;

/// Gives a key to those at the head of its queue who can have it now, as far as
/// tries are left.
fn serve(d: &mut Decision<'_>, key: &Key, tries: &mut u32) {
    while let Some(next) = head::next(d.core, key) {
        if *tries == 0 {
            d.core.due.dirty.insert(key.clone());
            break;
        }
        let id = match next {
            // What holds it up is another key, and that is as it was.
            Next::Waiter(id) if d.held_up.get(&id).is_some_and(|other| other != key) => break,
            Next::Waiter(id) => id,
            Next::Subscribers if subscribers::offer(d, key) => break,
            Next::Subscribers => continue,
        };
        *tries = tries.saturating_sub(1);
        // Who nests in what was granted a moment ago may have come before.
        let waiter = d.core.queues.get(id);
        let mode = waiter.map(|waiter| waiter.want.mode);
        let rank = waiter.map(|waiter| waiter.rank.clone());
        if judge::nest_first(d, rank.as_ref()) {
            continue;
        }
        match grant::try_grant(d, id) {
            Tried::Waits if judge::judge_permits(d, key) => {}
            Tried::Waits => break,
            // Nobody else can have it now, and what its owner waits for nests by itself.
            Tried::Has if !mode.is_some_and(Mode::is_for_several) => break,
            Tried::Has | Tried::Leaves => {}
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
    let mut tries = MOST_TRIES;
    let before = d.size();
    loop {
        if tries == 0 || d.is_long(before) {
            // The rest has a decision of its own, after others had a turn.
            d.core.due.append(std::mem::take(&mut d.work));
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
        tries = tries.saturating_sub(1);
        if !judge::nest_first(d, None)
            && !judge::judge_upgrades(d)
            && !judge::judge_cycles(d)
            && !d.work.is_stirred()
        {
            break;
        }
    }
    for (key, whom) in std::mem::take(&mut d.work.freed) {
        // As nearly always, it has gone to the next.
        let plain = d.core.locks.get(&key).and_then(Entry::plain);
        if plain.is_some() {
            continue;
        }
        let is_open = match d.ks.look(&key, &[]).kind {
            Kind::Free => true,
            Kind::ReadWrite(Mode::Read) => {
                whom == Whom::AllShared && !head::is_waited_for(d.core, &key)
            }
            Kind::ReadWrite(_) | Kind::Permits(_) | Kind::Plain | Kind::Foreign(_) => false,
        };
        if is_open {
            d.wake(&key, whom);
        }
    }
}
