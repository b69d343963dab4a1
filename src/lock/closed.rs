//! A connection is closed that has watchdog holds.

use super::grants::Grant;
use super::watchdog::{self, Bond};
use super::{release, sight, Decision};

/// Exactly its watchdog holds end, as if they were released. On how many keys; at most
/// so many at a time.
pub fn closed(d: &mut Decision<'_>, client: u64, most: usize) -> usize {
    let bonds = d.core.watchdogs.of_client(client);
    let bonds: Vec<Bond> = bonds.take(most).cloned().collect();
    let before = d.out.len();
    let mut count: usize = 0;
    for (key, owner) in bonds {
        if d.is_long(before) {
            break;
        }
        count = count.saturating_add(1);
        // What it was granted and never got is over with it.
        let its = |grant: &&mut Grant| grant.watched && grant.client == client;
        for grant in d.core.grants.values_mut().filter(its) {
            grant.keys.retain(|(granted, _)| *granted != key);
        }
        let look = sight::see(d, &key, &owner);
        let modes = watchdog::on_closed(d.core, (&key, &owner), client);
        if !modes.is_empty() {
            release::end_holds(d, &key, &owner, look, &modes);
        }
    }
    count
}
