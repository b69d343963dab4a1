//! The renewals of watched leases: when they are due, and what each of them writes.

use super::kind::own_lease;
use super::table::Taken;
use super::watchdog::{self, Bond};
use super::{leases, ready, reconcile};
use super::{Act, Decision, Key, Lease, Owner};

/// A renewal that has to wait for lease keys on another node is tried again after so
/// many ms.
const RETRY_MS: i64 = 100;

/// Renews these leases. Whether that was so much that some are left, and due still.
pub fn renew_watched(d: &mut Decision<'_>, due: &[Bond]) -> bool {
    d.as_many(due, |d, (key, owner)| renew_watch(d, key, owner)) < due.len()
}

/// Renews a watched lease: to its full length from now, but not beyond
/// `rlock.watchdog-max`, and never to an earlier moment.
fn renew_watch(d: &mut Decision<'_>, key: &Key, owner: &Owner) {
    let look = ready::look(d, key, owner);
    let held = d.core.locks.hold(key, owner);
    let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
        // Its lock has ended, and what follows for it was to come.
        return reconcile::end_first(d, key, owner);
    };
    let mut watchers = watch.taken.iter().filter_map(Taken::watcher).peekable();
    let is_known = watchers.peek().is_some();
    if is_known && !watchers.any(|client| d.ks.may(client, Act::Renew(key))) {
        // The lease ends then, and that is told as any other loss.
        watchdog::change_watch(d.core, key, owner, |watch| watch.next = None);
        return;
    }
    let to = watch.renewed_to(d.now);
    let last = watch.bound == Some(to);
    let away = look.lease == Lease::Migrating;
    let own = own_lease(&look);
    if matches!(own, Lease::Until(at) if at < to && !away) {
        leases::set_lease(d, key, owner, &look, to);
    } else if own != Lease::Gone && look.expires.is_some_and(|end| end < to) {
        // Its lease keys were given another end by hand than the hash, or are on
        // another node.
        d.expire_at(key, look.expires, Some(to));
        leases::know_end(d, key, &look, Some(to));
    }
    let end = d.core.locks.lease_end(key, owner);
    let now = d.now;
    watchdog::change_watch(d.core, key, owner, |watch| {
        watch.schedule(now);
        if last {
            watch.next = None;
        }
        if away {
            // As soon as they are here. If that is not before its end, it is
            // written anew then.
            let soon = now.deadline(RETRY_MS);
            watch.next = watch.next.map(|at| at.min(soon).min(end.unwrap_or(soon)));
        }
    });
}
