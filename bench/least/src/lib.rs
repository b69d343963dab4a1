//! The least module that hands a lock from one client to the next: what any module must pay.
//! `make bench` and `make costs` hold rlock against it.
//!
//! ```text
//! LEAST.ACQUIRE key owner lease [BLOCK ms]    a token, or nil: another owner holds it
//! LEAST.RELEASE key owner                     0, or NOTHELD
//! ```
//!
//! A lock is a hash `{owner: 1}` with an end, as a plain one of rlock's. Nothing is remembered
//! of it. Who blocks stands in a queue of its key, and RELEASE hands the lock to the first.
//! Nothing else wakes it: where a lease ends, or the key is deleted, or a grant does not reach
//! its client, the others of the queue wait for the next RELEASE. Holds do not nest.
//!
//! What is written is replicated as plain commands: HSET and PEXPIREAT, DEL. With `verbatim`
//! behind `loadmodule` the command itself is, which costs next to nothing where nobody keeps a
//! record; rlock does the same there, to have the write counted. With an AOF it is no honest
//! floor: each load of the file would begin the leases anew.

// As in src/lib.rs, and for the same reason: a panic would take the server down.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects
)]

mod api;

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, CStr};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::{now, Blocked, Ctx, Held, Id, Key, Reply, Text};
use redis_module::raw;

/// One who waits.
struct Waiter {
    client: Blocked,
    owner: Held,
    lease: i64,
}

type Queue = VecDeque<Waiter>;

/// The queues by database and key, first come, first served. None is empty.
static QUEUES: Mutex<Vec<HashMap<Vec<u8>, Queue>>> = Mutex::new(Vec::new());

/// The last one given. It begins with the clock, so that it has as many digits as rlock's.
static TOKEN: AtomicI64 = AtomicI64::new(0);

/// What the server calls.
enum Least {}

impl api::Module for Least {
    const NAME: &'static CStr = c"least";

    fn loaded() {
        TOKEN.store(now().saturating_mul(1_000), Relaxed);
    }

    fn acquire(ctx: Ctx<'_>, args: &[Text<'_>]) -> Option<Reply> {
        let (name, owner, lease, wait) = match args {
            [name, owner, lease] => (name, owner, lease, None),
            [name, owner, lease, block, wait] if block.bytes().eq_ignore_ascii_case(b"BLOCK") => (
                name,
                owner,
                lease,
                Some(wait.number().filter(|ms| *ms >= 0)?),
            ),
            _ => return None,
        };
        let lease = lease.number().filter(|lease| *lease > 0)?;
        let end = now().checked_add(lease)?;
        let key = Key::open(ctx, *name)?;
        if key.is_empty() {
            key.add(*owner)?;
            key.expire_at(end)?;
            ctx.replicate_taken(*name, *owner, end);
            ctx.touched(*name);
            return Some(Reply::Number(token()));
        }
        let Some(wait) = wait.filter(|_| ctx.may_block()) else {
            return Some(Reply::Null);
        };
        let client = ctx.block::<Least>(wait)?;
        let owner = owner.hold();
        let mut queues = queues();
        let db = ctx.db();
        if queues.len() <= db {
            queues.resize_with(db.saturating_add(1), HashMap::new);
        }
        if let (Some(queues), Some(owner)) = (queues.get_mut(db), owner) {
            let waiter = Waiter {
                client,
                owner,
                lease,
            };
            match queues.get_mut(name.bytes()) {
                Some(queue) => queue.push_back(waiter),
                None => _ = queues.insert(name.bytes().to_vec(), Queue::from([waiter])),
            }
        }
        Some(Reply::Later)
    }

    fn release(ctx: Ctx<'_>, args: &[Text<'_>]) -> Option<Reply> {
        let [name, owner] = args else {
            return None;
        };
        let key = Key::open(ctx, *name)?;
        if !key.has(*owner) {
            return Some(Reply::Error(c"NOTHELD this owner does not hold the lock"));
        }
        match next(ctx.db(), name.bytes()) {
            None => {
                key.delete()?;
                ctx.replicate_left(*name);
            }
            Some(waiter) => {
                let new = waiter.owner.text();
                // Where the sum is too large the lease is over at once.
                let end = now().saturating_add(waiter.lease);
                key.exchange(*owner, new)?;
                key.expire_at(end)?;
                ctx.replicate_passed(*name, new, end);
                waiter.client.wake(token());
            }
        }
        ctx.touched(*name);
        Some(Reply::Number(0))
    }

    fn left(client: Id) {
        for queues in queues().iter_mut() {
            for queue in queues.values_mut() {
                queue.retain(|waiter| waiter.client.id() != client);
            }
            queues.retain(|_, queue| !queue.is_empty());
        }
    }
}

fn token() -> i64 {
    // Not one step, which would cost more: the server calls us one at a time.
    let token = TOKEN.load(Relaxed).wrapping_add(1);
    TOKEN.store(token, Relaxed);
    token
}

fn queues() -> MutexGuard<'static, Vec<HashMap<Vec<u8>, Queue>>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is first, and leaves the queue.
fn next(db: usize, name: &[u8]) -> Option<Waiter> {
    let mut queues = queues();
    let queues = queues.get_mut(db).filter(|queues| !queues.is_empty())?;
    let queue = queues.get_mut(name)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        queues.remove(name);
    }
    first
}

/// # Safety
/// For the server.
#[no_mangle]
#[allow(non_snake_case)]
unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { api::load::<Least>(ctx, argv, argc) }
}
