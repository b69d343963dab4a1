//! Grants whose reply never reaches its client.

use super::counters::Counters;
use super::table::Hold;
use super::{reconcile, request, watchdog};
use super::{Decision, WaiterId};

/// The holds of such a grant end as if they were released.
pub fn take_back(d: &mut Decision<'_>, id: WaiterId) {
    let Some(grant) = d.core.in_flight.remove(id) else {
        return;
    };
    let mut any = false;
    for (key, token) in &grant.keys {
        let look = reconcile::read(d, key, &grant.owner);
        let entry = d.core.locks.get(key);
        let known = entry.and_then(|entry| entry.hold(&grant.owner));
        let shared = entry.and_then(|entry| entry.shared());
        let first = shared.and_then(|shared| shared.party(&grant.owner)?.first);
        let its = |hold: &&Hold| [hold.token, first].contains(&Some(*token));
        let Some(hold) = known.filter(its) else {
            continue;
        };
        // Released meanwhile, by another connection of its owner's, or ended
        // with its own.
        let (client, mode) = (grant.client, grant.mode);
        let is_there = match &hold.watch {
            Some(watch) => watch.has(mode, client),
            None => hold.client == client,
        };
        if !is_there {
            continue;
        }
        any = true;
        watchdog::on_one_released(d.core, key, &grant.owner, mode, client);
        request::end_holds(d, key, &grant.owner, look, &[(mode, 1)]);
    }
    if any {
        Counters::up(&mut d.core.counters.taken_back);
    }
}
