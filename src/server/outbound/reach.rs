//! Whether somebody would hear what is published.

use super::replication::Replication;
use crate::lock::Address;
use crate::server::sys;

/// Whether a client that is told at an address would hear it, as far as the server can say:
/// it is there and subscribed to something, and the channel has a subscriber. What a
/// publish returns tells less: it counts those who listen to patterns, and connections that
/// are about to close.
pub fn hears(to: &Replication<'_>, address: &Address) -> bool {
    sys::is_subscribed(address.client) && is_heard(to, &address.channel)
}

/// Whether anybody subscribes to the channel by its name. Those who listen to a
/// pattern do not count.
pub fn is_heard(to: &Replication<'_>, channel: &[u8]) -> bool {
    let which: &[u8] = if to.shell.server.cluster {
        b"SHARDNUMSUB"
    } else {
        b"NUMSUB"
    };
    // The channel, and how many subscribe to it.
    sys::number_at(to.ctx, c"PUBSUB", &[which, channel], 1).is_some_and(|count| count > 0)
}
