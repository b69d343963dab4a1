//! Whether a user still may what it could when it asked: rights can be taken away while a
//! request waits, and while a watchdog keeps a lock.

use crate::lock::{Act, ClientId, Key};
use crate::server::sys::{Ctx, FirstArgs, User};

/// Whether the user that this connection has now may do this. A connection without a user, or
/// whose user the server does not name, may: its request was let in. Of a command's arguments the
/// server looks at its keys alone.
pub fn may(ctx: Ctx<'_>, given: FirstArgs<'_>, client: ClientId, act: Act<'_>) -> bool {
    let Some(user) = User::of_client(ctx, client) else {
        return true;
    };
    let may_run = |name: &[u8], key: &Key| {
        let key = given.text(&key.name);
        key.is_some_and(|key| user.may_run(name, &key))
    };
    match act {
        Act::Renew(key) => may_run(b"rlock.renew", key),
        // By MACQUIRE too, as it may have been.
        Act::Acquire(keys @ [key]) => may_run(b"rlock.acquire", key) || may_acquire(&user, keys),
        Act::Acquire(keys) => may_acquire(&user, keys),
    }
}

fn may_acquire(user: &User<'_>, keys: &[Key]) -> bool {
    let count = keys.len().to_string();
    let head: [&[u8]; 2] = [b"rlock.macquire", count.as_bytes()];
    let names = keys.iter().map(|key| &key.name[..]);
    let args: Vec<&[u8]> = head.into_iter().chain(names).collect();
    user.may_run_all(&args)
}
