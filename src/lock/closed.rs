//! A connection is closed that has watchdog holds.

use super::watchdog::{self, Bond};
use super::{reconcile, request, ClientId, Decision};

/// Exactly its watchdog holds end, as if they were released. On how many keys; at most
/// so many at a time.
pub fn closed(d: &mut Decision<'_>, client: ClientId, most: usize) -> usize {
    let bonds = d.core.watchdogs.of_client(client);
    let bonds: Vec<Bond> = bonds.take(most).cloned().collect();
    d.as_many(&bonds, |d, (key, owner)| {
        d.core.in_flight.forget_watched(client, key);
        let look = reconcile::read(d, key, owner);
        let modes = watchdog::on_closed(d.core, key, owner, client);
        if !modes.is_empty() {
            request::end_holds(d, key, owner, look, &modes);
        }
    })
}
