//! The wake-up message for Redisson's waiters: they subscribe to a channel named
//! after the lock and try again when a message comes.

use super::ffi::{api, Ctx, Text};
use super::replication;
use super::shell::Shell;
use crate::config;
use crate::lock::Key;
use crate::redisson;

/// Tells those who wait by subscription that the lock was left free.
pub fn wake(shell: &Shell, ctx: Ctx, key: &Key, shared: bool) {
    if !config::redisson_compat() {
        return;
    }
    let (channel, wakes_all) = redisson::wakeup(&key.name, shared);
    let Some(channel) = Text::new(&channel) else {
        return;
    };
    let message = if wakes_all { &shell.one } else { &shell.zero };
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
