//! Where a lock's slot is, in a cluster: this node's, another's, or migrating between
//! the two, when its keys move one by one.
//!
//! The server shows nobody which of its slots migrate, but it checks each
//! command for it. So it is asked by commands that it refuses for that reason before
//! all others, and that it would refuse for their nonsense next: no key is looked at,
//! expired or counted as missed. While a key is open it is not asked.

use std::ffi::CStr;

use redis_module::ContextFlags;

use super::hash_slot::hash_slot;
use crate::error::Error;
use crate::lock::{Key, Refusal, Slot};
use crate::redisson;
use crate::server::sys::{call, Ctx, Scope, Selected};

/// The commands that are asked by. COPY has two keys, LMPOP any number; RESTORE-ASKING is
/// what the nodes send each other the keys by, and the one that they take while a slot
/// arrives; MIGRATE is what they take while it migrates, whatever has gone.
pub const COMMANDS: [&CStr; 4] = [c"COPY", c"LMPOP", c"RESTORE-ASKING", c"MIGRATE"];

/// No option of theirs.
const NONSENSE: &[u8] = b"rlock";

/// Asks whose the lock's slot is. In a cluster only; elsewhere every one is ours.
pub fn whose(ctx: Ctx<'_>, lock: &Key) -> Slot {
    let settled = ask_for_two(ctx, lock);
    if settled == Some(true) {
        return Slot::Ours;
    }
    match (settled, ask_for_it(ctx, lock)) {
        // No other key can lie in its slot: where it may be written it is.
        (None, Some(true)) => Slot::Ours,
        (Some(_), Some(true)) => Slot::Migrating,
        // The key has gone ahead of its slot.
        (_, _) if is_open(ctx, lock) => Slot::Migrating,
        (_, _) => Slot::Others,
    }
}

/// Whether another key of the lock that is not here is nowhere else. On a replica, which
/// decides nothing, it is taken to be so. In a cluster only.
pub fn slot_stays(ctx: Ctx<'_>, lock: &Key) -> bool {
    ask_for_two(ctx, lock) != Some(false) || !ctx.flags().contains(ContextFlags::MASTER)
}

/// Whether the server would let in a request for all of these keys that came for the first
/// of them; what it would say otherwise. In a cluster only.
pub fn are_here(ctx: Ctx<'_>, keys: &[&[u8]]) -> Result<(), Error> {
    let [first, others @ ..] = keys else {
        return Ok(());
    };
    let slot = hash_slot(first);
    if others.iter().any(|key| hash_slot(key) != slot) {
        return Err(Error::cross_slot());
    }
    if others.is_empty() {
        return Ok(());
    }
    let count = keys.len().to_string();
    let args = [&[count.as_bytes()], keys, &[NONSENSE]].concat();
    let db = ctx.db();
    match was_let_in(ctx, db, c"LMPOP", &args) {
        Some(false) => Err(Refusal::Migrating {
            key: Key::new(db, first),
        })?,
        _ => Ok(()),
    }
}

/// Whether two keys of the lock's slot that nobody has can be had here: not while it
/// migrates, in either direction, whoever asks. `None`: there can be no other key in the slot
/// of the lock.
fn ask_for_two(ctx: Ctx<'_>, lock: &Key) -> Option<bool> {
    let [one, other] = redisson::probes(&lock.name)?;
    was_let_in(ctx, lock.db, c"COPY", &[&one, &other, NONSENSE])
}

/// Whether the lock's own key can be had here: if the slot migrates from here only
/// while the key is here, if it migrates to here in any case.
fn ask_for_it(ctx: Ctx<'_>, lock: &Key) -> Option<bool> {
    let args = [&lock.name[..], b"0", b"", NONSENSE];
    was_let_in(ctx, lock.db, c"RESTORE-ASKING", &args)
}

/// Whether the slot migrates from or to this node, be the lock's key here or not.
fn is_open(ctx: Ctx<'_>, lock: &Key) -> bool {
    let args: [&[u8]; 6] = [b"", b"0", &lock.name, b"0", b"1", NONSENSE];
    was_let_in(ctx, lock.db, c"MIGRATE", &args) == Some(true)
}

/// Whether the server came as far as the command itself: a refusal of its own has a
/// number, the command's has none.
fn was_let_in(ctx: Ctx<'_>, db: i32, command: &CStr, args: &[&[u8]]) -> Option<bool> {
    let _db = Selected::new(ctx, db);
    let called = call(ctx, command, Scope::Plain, args)?;
    let refused = matches!(
        called.errno,
        libc::EPERM | libc::ENETDOWN | libc::EROFS | libc::ENOENT | libc::EINVAL
    );
    Some(called.replied && !refused)
}
