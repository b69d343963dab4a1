//! A connection is closed that had waits, or holds that were bound to it.

use super::watchdog::{self, Bond};
use super::{leaving, reconcile, request, ClientId, Decision, WaiterId};

/// Its waits end, and exactly its watchdog holds, as if they were released. How many; at
/// most so many at a time.
pub fn closed(d: &mut Decision<'_>, client: ClientId, most: usize) -> usize {
    let waits: Vec<WaiterId> = d.core.waits_of(client).take(most).collect();
    for id in &waits {
        leaving::cut_off(d.core, &mut d.work, d.now, *id);
    }
    let most = most.saturating_sub(waits.len());
    let bonds = d.core.watchdogs.of_client(client);
    let bonds: Vec<Bond> = bonds.take(most).cloned().collect();
    let ended = d.as_many(&bonds, |d, (key, owner)| {
        d.core.in_flight.forget_watched(client, key);
        let look = reconcile::read(d, key, owner);
        let ended = watchdog::on_closed(d, key, owner, client);
        if !ended.is_empty() {
            let modes: Vec<_> = ended
                .iter()
                .map(|taken| (taken.mode, taken.holds))
                .collect();
            request::end_holds(d, key, owner, look, &modes);
            watchdog::on_released(d, key, owner, ended, Some(client));
        }
    });
    waits.len().saturating_add(ended)
}
