//! A connection is closed that had waits, or holds that were bound to it.

use super::queue::Portion;
use super::watchdog::{self, Bond};
use super::{leaving, reconcile, request, ClientId, Decision};

/// Its waits end, and exactly its watchdog holds, as if they were released. Of how many keys;
/// about so many at a time.
pub fn closed(d: &mut Decision<'_>, client: ClientId, keys: usize) -> usize {
    d.core.heartbeats.forget(client);
    let most = cut_off(d, client, keys);
    let bonds = d.core.watchdogs.of_client(client);
    let bonds: Vec<Bond> = bonds.take(most).cloned().collect();
    let ended = d.as_many(&bonds, |d, (key, owner)| {
        reconcile::end_first(d, key, owner);
        d.core.in_flight.forget_watched(client, key);
        let look = reconcile::read(d, key, owner);
        let (ended, unbound) = watchdog::on_closed(d, key, owner, client);
        if !ended.is_empty() {
            request::end_holds(d, key, owner, look, &ended);
        }
        watchdog::on_released(d.core, d.out, key, owner, unbound, Some(client));
    });
    keys.saturating_sub(most).saturating_add(ended)
}

/// Its next waits end, with about so many keys. For how many others there is room then.
pub fn cut_off(d: &mut Decision<'_>, client: ClientId, keys: usize) -> usize {
    let mut portion = Portion::new(keys);
    for id in portion.of(d.core.waits_of(client), |id| d.core.queues.get(id)) {
        leaving::cut_off(d.core, &mut d.work, d.now, id);
    }
    portion.left()
}
