//! The queue of those who wait in Redisson's RFairLock: a list of owners,
//! `redisson_lock_queue:{lock}`, and a sorted set of the moments at which each of
//! them gives up, `redisson_lock_timeout:{lock}`. Only the head may take the lock,
//! and it is woken on a channel of its own.

use redis_module::RedisValue;

use crate::lock::Key;
use crate::redisson;
use crate::server::state::clock;
use crate::server::sys::{ask, bytes, Access, Ctx, OpenKey, Selected, Text, Type};

/// So many are looked at whose time is over: Redisson removes them as it goes.
const MOST_STALE: &[u8] = b"31";

/// The owner that is to have the lock next, if anybody stands there.
pub fn head(ctx: Ctx<'_>, lock: &Key) -> Option<Vec<u8>> {
    let queue = redisson::fair_queue(&lock.name);
    let _db = Selected::new(ctx, lock.db);
    if !is_list(ctx, &queue) {
        return None;
    }
    let Some(RedisValue::Array(owners)) = ask(ctx, "LRANGE", &[&queue[..], b"0", MOST_STALE])
    else {
        return None;
    };
    let now_ms = clock::now_by_wall().wall.0 as f64 / 1000.0;
    let timeouts = redisson::fair_timeouts(&lock.name);
    let waits_still = |owner: &&[u8]| {
        let score = ask(ctx, "ZSCORE", &[&timeouts[..], owner]);
        let score = score.as_ref().and_then(bytes).and_then(number);
        score.is_none_or(|until| until > now_ms)
    };
    let head = owners.iter().filter_map(bytes).find(waits_still);
    head.map(<[u8]>::to_vec)
}

/// Looked up for every lock that is left free, so without more than that.
fn is_list(ctx: Ctx<'_>, name: &[u8]) -> bool {
    let Some(name) = Text::new(name) else {
        return false;
    };
    // For writing: such a look counts as no miss.
    let open = OpenKey::new(ctx, &name, Access::Write);
    open.is_some_and(|open| open.is(Type::List))
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
