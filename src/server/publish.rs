//! The wake-up message for those who wait by subscription, as Redisson does: they
//! subscribe to a channel named after the lock and try again when a message comes.

use redis_module::raw;

use super::fair_queue;
use super::ffi::{api, Ctx, Text};
use super::replication;
use super::shell::Shell;
use crate::config;
use crate::lock::{Key, Listening, Whom};
use crate::redisson;

/// Tells those who wait by subscription that the lock was left free; whether anybody
/// does, if that matters to the core.
pub fn wake(shell: &Shell, ctx: Ctx, key: &Key, whom: Whom) -> Option<Listening> {
    let shared = whom != Whom::One;
    if !config::redisson_compat() {
        return known(shell, key).then_some(Listening::Nobody);
    }
    let channel = redisson::channel(&key.name, shared);
    let message = match whom {
        Whom::AllShared => &shell.one,
        Whom::One | Whom::OneShared => &shell.zero,
    };
    let mut woken = publish(shell, ctx, &channel, message) && subscribed(shell, ctx, &channel);
    if !shared {
        if let Some(head) = fair_queue::head(ctx, key) {
            let channel = redisson::fair_channel(&key.name, &head);
            publish(shell, ctx, &channel, &shell.zero);
            woken = woken || subscribed(shell, ctx, &channel);
        }
    }
    if woken {
        return Some(Listening::Woken { shared });
    }
    known(shell, key).then_some(Listening::Nobody)
}

/// Whether anybody waits for the lock by subscription, without a message; `None`:
/// nobody does, and none was known to.
pub fn listening(shell: &Shell, ctx: Ctx, key: &Key, shared: bool) -> Option<Listening> {
    let waits = || {
        if subscribed(shell, ctx, &redisson::channel(&key.name, shared)) {
            return true;
        }
        let head = fair_queue::head(ctx, key).filter(|_| !shared);
        head.is_some_and(|head| subscribed(shell, ctx, &redisson::fair_channel(&key.name, &head)))
    };
    if config::redisson_compat() && waits() {
        return Some(Listening::Waiting { shared });
    }
    known(shell, key).then_some(Listening::Nobody)
}

/// Whether the core knows of anybody who waits for the lock by subscription.
fn known(shell: &Shell, key: &Key) -> bool {
    let core = shell.core.try_borrow();
    core.is_ok_and(|core| core.knows_subscribers(key))
}

/// Publishes; whether this server has anybody to hear it.
fn publish(shell: &Shell, ctx: Ctx, channel: &[u8], message: &Text) -> bool {
    let Some(channel) = Text::new(channel) else {
        return false;
    };
    let (to, what) = (channel.as_ptr(), message.as_ptr());
    if shell.server.cluster {
        let heard = api!(RedisModule_PublishMessageShard(ctx.0, to, what));
        return heard.is_some_and(|count| count > 0);
    }
    let heard = api!(RedisModule_PublishMessage(ctx.0, to, what));
    // The call above reaches only subscribers of this server.
    if shell.replicas.get() && replication::publish(ctx, &channel, message).is_none() {
        ctx.warn("rlock: the server did not replicate a wake-up message");
    }
    heard.is_some_and(|count| count > 0)
}

/// Whether anybody subscribes to the channel by its name. Those who listen to a
/// pattern do not wait for the lock.
fn subscribed(shell: &Shell, ctx: Ctx, channel: &[u8]) -> bool {
    let ask = if shell.server.cluster {
        c"SHARDNUMSUB"
    } else {
        c"NUMSUB"
    };
    // SAFETY: set at load.
    let call = unsafe { raw::RedisModule_Call };
    let (Some(call), Some(channel)) = (call, Text::new(channel)) else {
        return false;
    };
    // SAFETY: the arguments are of the kinds that the format names.
    let reply = unsafe {
        call(
            ctx.0,
            c"PUBSUB".as_ptr(),
            c"Ecs".as_ptr(),
            ask.as_ptr(),
            channel.as_ptr(),
        )
    };
    if reply.is_null() {
        return false;
    }
    // The channel, and how many subscribe to it.
    let count = api!(RedisModule_CallReplyArrayElement(reply, 1));
    let count = count.filter(|count| !count.is_null());
    let count = count.and_then(|count| api!(RedisModule_CallReplyInteger(count)));
    api!(RedisModule_FreeCallReply(reply));
    count.is_some_and(|count| count > 0)
}
