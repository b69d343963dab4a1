//! Watched leases that run out while nothing may be written. The lock is looked at
//! once it may be again; but an open connection means a lock that is held, and to
//! close one needs no write.

use super::holds::{tell, unbind_some};
use super::index::Lapsed;
use super::losses::Why;
use crate::lock::table::Entry;
use crate::lock::{Decision, Key, Owner, Reason};

/// Whoever watches a lease which is over is to know. Looks at so many at most, and at each
/// once; whether there are more. The lease is not renewed any more. `all`: also those who
/// are to know by the close of their connection.
pub fn let_lapse(d: &mut Decision<'_>, most: usize, all: bool) -> bool {
    let mut lapsed = std::mem::take(&mut d.core.watchdogs.lapsed);
    let over = d.core.locks.due_behind(&lapsed.upto, d.now, most);
    let mut more = over.len() == most;
    for (at, key) in over {
        let holds = d.core.locks.get(&key).into_iter().flat_map(Entry::holds);
        for hold in holds.filter(|hold| hold.watch.is_some()) {
            let end = d.core.locks.lease_end(&key, &hold.owner);
            let end = end.map(|end| (end, key.clone(), hold.owner.clone()));
            lapsed.ends.extend(end);
        }
        lapsed.upto.insert(key.db, (at, key.name));
    }
    let now = (d.now.wall_ms(), Key::default(), Owner::default());
    let ended = lapsed.ends.extract_if(..now, |_| true);
    let ended: Vec<_> = ended.take(most).collect();
    more |= ended.len() == most;
    d.core.watchdogs.lapsed = lapsed;
    for (_, key, owner) in ended {
        lapse(d, &key, &owner, all);
    }
    more
}

fn lapse(d: &mut Decision<'_>, key: &Key, owner: &Owner, all: bool) {
    let over = d.core.locks.lease_end(key, owner);
    if over.is_none_or(|at| at >= d.now.wall_ms()) {
        return;
    }
    let lost = unbind_some(d.core, key, owner, |watch, changed| {
        watch.unbind(|taken| all || taken.notify.is_some(), changed);
    });
    tell(d, key, owner, lost, Why::lost(Reason::Expired));
}

/// Something is written again: all leases are looked at anew.
pub fn begin_anew(d: &mut Decision<'_>) {
    d.core.watchdogs.lapsed = Lapsed::default();
}
