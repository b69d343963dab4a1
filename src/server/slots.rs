//! Where a lock's slot is, in a cluster: this node's, another's, or on its way between
//! the two, when its keys move one by one.
//!
//! The server tells nobody which of its slots are on their way, but it checks each
//! command for it. So it is asked by commands that it refuses for that reason before
//! all others, and that it would refuse for their nonsense next: no key is looked at,
//! expired or counted as missed.

use std::ffi::{c_int, CStr};

use redis_module::raw;

use super::ffi::{api, Ctx, Selected, Text};
use super::replication::errno;
use super::shell::Shell;
use crate::lock::Key;
use crate::redisson;

/// The commands that are asked by. COPY has two keys; RESTORE-ASKING is what the nodes
/// send each other the keys by, and the one that they take while a slot arrives.
pub const COMMANDS: [&CStr; 2] = [c"COPY", c"RESTORE-ASKING"];

/// No option of theirs.
const NONSENSE: &CStr = c"rlock";

/// Whose a lock's slot is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// This node's: what is not here is nowhere.
    Ours,
    /// On its way from or to this node: what is here of it is this node's to act on.
    OnItsWay,
    /// Another node's, or on its way there and the lock's key with it.
    Others,
}

/// Asks whose the lock's slot is. Outside a cluster every one is ours.
pub fn whose(shell: &Shell, ctx: Ctx, lock: &Key) -> Slot {
    if !shell.server.cluster {
        return Slot::Ours;
    }
    let settled = ask_for_two(ctx, lock);
    if settled == Some(true) {
        return Slot::Ours;
    }
    match (settled, ask_for_it(ctx, lock)) {
        // No other key can lie beside it: where it may be written it is.
        (None, true) => Slot::Ours,
        (Some(_), true) => Slot::OnItsWay,
        (_, false) => Slot::Others,
    }
}

/// Whether a key beside the lock that is not here is nowhere else. On a replica, which
/// decides nothing, it is taken to be so.
pub fn is_settled(shell: &Shell, ctx: Ctx, lock: &Key) -> bool {
    let is_master = || ctx.flags() & raw::REDISMODULE_CTX_FLAGS_MASTER as i32 != 0;
    !shell.server.cluster || ask_for_two(ctx, lock) != Some(false) || !is_master()
}

/// Whether two keys of the lock's slot that nobody has can be had here: not while it is
/// on its way, in either direction, whoever asks. `None`: there can be no key beside
/// the lock.
fn ask_for_two(ctx: Ctx, lock: &Key) -> Option<bool> {
    let [one, other] = redisson::probes(&lock.name)?;
    let (one, other) = (Text::new(&one)?, Text::new(&other)?);
    let _db = Selected::new(ctx, lock.db);
    // SAFETY: set at load.
    let call = unsafe { raw::RedisModule_Call }?;
    errno::clear();
    // SAFETY: the arguments are of the kinds that the format names.
    let reply = unsafe {
        call(
            ctx.0,
            c"COPY".as_ptr(),
            c"Essc".as_ptr(),
            one.as_ptr(),
            other.as_ptr(),
            NONSENSE.as_ptr(),
        )
    };
    Some(was_let_in(reply))
}

/// Whether the lock's own key can be had here: if the slot is on its way from here only
/// while the key is here, if it is on its way to here in any case.
fn ask_for_it(ctx: Ctx, lock: &Key) -> bool {
    let Some(name) = Text::new(&lock.name) else {
        return false;
    };
    let _db = Selected::new(ctx, lock.db);
    // SAFETY: set at load.
    let Some(call) = (unsafe { raw::RedisModule_Call }) else {
        return false;
    };
    errno::clear();
    let zero: std::ffi::c_longlong = 0;
    // SAFETY: the arguments are of the kinds that the format names.
    let reply = unsafe {
        call(
            ctx.0,
            c"RESTORE-ASKING".as_ptr(),
            c"Eslcc".as_ptr(),
            name.as_ptr(),
            zero,
            c"".as_ptr(),
            NONSENSE.as_ptr(),
        )
    };
    was_let_in(reply)
}

/// Whether the server came as far as the command itself: a refusal of its own has a
/// number, the command's has none.
fn was_let_in(reply: *mut raw::RedisModuleCallReply) -> bool {
    let refused = errno::get();
    if !reply.is_null() {
        api!(RedisModule_FreeCallReply(reply));
    }
    let refusals: [c_int; 5] = [
        libc::EPERM,
        libc::ENETDOWN,
        libc::EROFS,
        libc::ENOENT,
        libc::EINVAL,
    ];
    !reply.is_null() && !refusals.contains(&refused)
}
