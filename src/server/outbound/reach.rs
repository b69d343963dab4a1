//! Whether somebody would hear what is published.

use redis_module::RedisValue;

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
    match sys::ask(to.ctx, "PUBSUB", &[which, channel]) {
        Some(RedisValue::Array(pair)) => {
            matches!(pair.get(1), Some(RedisValue::Integer(count)) if *count > 0)
        }
        _ => false,
    }
}
