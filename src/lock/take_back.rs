//! Grants whose reply never reaches its client.

use super::counters::Counters;
use super::{reconcile, request, watchdog};
use super::{Decision, WaiterId};

/// The holds of such a grant end as if they were released.
pub fn take_back(d: &mut Decision<'_>, id: WaiterId) {
    let Some(grant) = d.core.in_flight.grants.remove(&id) else {
        return;
    };
    let mut any = false;
    let (owner, client, mode) = (&grant.want.owner, grant.want.client, grant.want.mode);
    for (key, token) in &grant.keys {
        let look = reconcile::read(d, key, owner);
        let known = d.core.locks.hold(key, owner);
        let known = known.filter(|_| d.core.locks.has_token(key, owner, mode, *token));
        // Released meanwhile, by another connection of its owner's, or ended
        // with its own.
        let is_there = known.is_some_and(|hold| match &hold.watch {
            Some(watch) => watch.has(mode, client),
            None => hold.client == client,
        });
        if !is_there {
            continue;
        }
        any = true;
        let over = watchdog::unbind_some(d.core, key, owner, |watch, changed| {
            watch.take_back(&grant.want, changed);
        });
        watchdog::let_go(d.core, &over);
        request::end_holds(d, key, owner, look, &[(mode, grant.want.share.count())]);
    }
    if any {
        Counters::up(&mut d.core.counters.taken_back);
    }
}
