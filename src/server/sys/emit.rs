//! What goes to others: replicated commands, messages, keyspace events, changed keys.
//! Messages and events may run other people's code, so there is none while a key is open.

use std::ffi::CStr;

use redis_module::{raw, NotifyEvent};

use super::api::{api, OK};
use super::ctx::Ctx;
use super::key::any_is_open;
use super::text::Text;

/// Where a command is replicated to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The replicas and the AOF.
    Everybody,
    /// The replicas alone.
    Replicas,
}

/// Replicates a command, with a number behind its other arguments if one is given. `None`:
/// the server did not take it.
pub fn replicate<const N: usize>(
    ctx: Ctx<'_>,
    command: &CStr,
    to: To,
    args: [&Text<'_>; N],
    number: Option<i64>,
) -> Option<()> {
    let call = api!(RedisModule_Replicate)?;
    let format = match (to, number) {
        (To::Everybody, None) => c"v",
        (To::Everybody, Some(_)) => c"vl",
        (To::Replicas, None) => c"Av",
        (To::Replicas, Some(_)) => c"Avl",
    };
    let mut args = args.map(Text::as_ptr);
    // SAFETY: the context is valid; `v` takes the array of strings and its length, `l` the
    // number, which is not looked at without it.
    let status = unsafe {
        call(
            ctx.as_ptr(),
            command.as_ptr(),
            format.as_ptr(),
            args.as_mut_ptr(),
            args.len(),
            number.unwrap_or(0),
        )
    };
    (status == OK).then_some(())
}

/// In place of replicating a write: lets the server count it as one, for its save
/// points. It takes the client's command for what is to be replicated, and throws that
/// away where nobody keeps a record.
pub fn count_a_write(ctx: Ctx<'_>) {
    ctx.context().replicate_verbatim();
}

/// Publishes to the subscribers of this server, in a cluster to those of the shard. How
/// many got it; none if a key is open.
pub fn publish(ctx: Ctx<'_>, shard: bool, channel: &Text<'_>, message: &Text<'_>) -> i32 {
    if any_is_open() {
        return 0;
    }
    let (channel, message) = (channel.as_ptr(), message.as_ptr());
    let call = if shard {
        api!(RedisModule_PublishMessageShard)
    } else {
        api!(RedisModule_PublishMessage)
    };
    call.map_or(0, |call| {
        // SAFETY: the context and both strings are valid.
        unsafe { call(ctx.as_ptr(), channel, message) }
    })
}

/// A keyspace event: its class and its name.
pub type KeyspaceEvent = (NotifyEvent, &'static CStr);

/// Emits a keyspace event, unless a key is open.
pub fn notify(ctx: Ctx<'_>, (class, name): KeyspaceEvent, key: &Text<'_>) {
    if any_is_open() {
        return;
    }
    if let Some(call) = api!(RedisModule_NotifyKeyspaceEvent) {
        // SAFETY: context, name and key are valid.
        unsafe { call(ctx.as_ptr(), class.bits(), name.as_ptr(), key.as_ptr()) };
    }
}

/// Whether clients can get keyspace events: the server is set to publish some.
pub fn publishes_events() -> bool {
    !raw::get_keyspace_events().is_empty()
}

/// Lets the server know that a key changed (WATCH, client-side caching). `None`: it cannot.
pub fn signal_modified(ctx: Ctx<'_>, key: &Text<'_>) -> Option<()> {
    let call = api!(RedisModule_SignalModifiedKey)?;
    // SAFETY: context and name are valid.
    unsafe { call(ctx.as_ptr(), key.as_ptr()) };
    Some(())
}
