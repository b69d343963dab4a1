//! The wake-up message for Redisson's waiters: they subscribe to a channel named
//! after the lock and try again when a message comes.

use super::ffi::{api, Ctx, Text};
use super::replication;
use super::shell::Shell;
use crate::config;
use crate::lock::{Key, Whom};
use crate::redisson;

/// Tells those who wait by subscription that the lock was left free.
pub fn wake(shell: &Shell, ctx: Ctx, key: &Key, whom: Whom) {
    if !config::redisson_compat() {
        return;
    }
    let channel = redisson::channel(&key.name, whom != Whom::One);
    let Some(channel) = Text::new(&channel) else {
        return;
    };
    let message = match whom {
        Whom::AllShared => &shell.one,
        Whom::One | Whom::OneShared => &shell.zero,
    };
    if shell.server.cluster {
        api!(RedisModule_PublishMessageShard(
            ctx.0,
            channel.as_ptr(),
            message.as_ptr()
        ));
        return;
    }
    api!(RedisModule_PublishMessage(
        ctx.0,
        channel.as_ptr(),
        message.as_ptr()
    ));
    // The call above reaches only subscribers of this server.
    if shell.replicas.get() && replication::publish(ctx, &channel, message).is_none() {
        ctx.warn("rlock: the server did not replicate a wake-up message");
    }
}
