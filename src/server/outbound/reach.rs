//! Whether what is published would reach anybody.

use redis_module::RedisValue;

use super::replication::Replication;
use crate::config;
use crate::lock::Address;
use crate::server::sys::{self, Ctx, ServerInfo};

/// Whether a message to an address would reach its client, as far as the server can say:
/// the client is there and subscribed to something, and the channel has a subscriber. What a
/// publish returns says less: it counts those who listen to patterns, and connections that
/// are about to close.
pub fn reaches(to: &Replication<'_>, address: &Address) -> bool {
    sys::is_subscribed(to.ctx, address.client) && has_subscriber(to, &address.channel)
}

/// Whether anybody subscribes to the channel by its name. Those who listen to a
/// pattern do not count.
pub fn has_subscriber(to: &Replication<'_>, channel: &[u8]) -> bool {
    let which: &[u8] = if to.shell.server.cluster {
        b"SHARDNUMSUB"
    } else {
        b"NUMSUB"
    };
    // The channel, and how many subscribe to it.
    sys::number_at(to.ctx, c"PUBSUB", &[which, channel], 1).is_some_and(|count| count > 0)
}

/// With more channels than this they are not looked through.
const MOST_CHANNELS: i64 = 1024;

/// Whether anybody may wait for some lock by subscription, to a channel of Redisson's. Where
/// there are no channels no command is run to find out, and where there are very many somebody
/// may.
pub fn anybody_waits(ctx: Ctx<'_>, cluster: bool) -> bool {
    if !config::redisson_compat() {
        return false;
    }
    let field = match cluster {
        true => c"pubsubshard_channels",
        false => c"pubsub_channels",
    };
    let stats = ServerInfo::section(ctx, c"stats");
    match stats.and_then(|stats| stats.number(field)) {
        Some(0) => return false,
        Some(1..=MOST_CHANNELS) => {}
        _ => return true,
    }
    channels(ctx, cluster).is_none_or(|channels| !channels.is_empty())
}

/// The channels of Redisson's that somebody subscribes to.
pub fn waited_at(ctx: Ctx<'_>, cluster: bool) -> Vec<Vec<u8>> {
    let channels = channels(ctx, cluster).filter(|_| config::redisson_compat());
    let channels = channels.unwrap_or_default();
    let names = channels.iter().filter_map(sys::bytes);
    names.map(<[u8]>::to_vec).collect()
}

fn channels(ctx: Ctx<'_>, cluster: bool) -> Option<Vec<RedisValue>> {
    let which: &[u8] = match cluster {
        true => b"SHARDCHANNELS",
        false => b"CHANNELS",
    };
    match sys::ask(ctx, "PUBSUB", &[which, b"redisson_*"]) {
        Some(RedisValue::Array(channels)) => Some(channels),
        _ => None,
    }
}
