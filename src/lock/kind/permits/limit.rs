//! LIMIT: changes how many permits of a lock there are, while it is held.

use super::learn::see;
use crate::lock::queue::Which;
use crate::lock::{modes, ready};
use crate::lock::{Decision, NoPermits, Pool, Refusal, Write};

/// The limit is this from now on, until nobody holds any permits. The limit that was in
/// force. Nothing is taken from anybody; who waits for more permits than there are now is
/// refused.
pub fn limit(d: &mut Decision<'_>, db: i32, name: &[u8], limit: i64) -> Result<i64, Refusal> {
    let key = d.core.locks.key(db, name);
    let look = ready::look(d, &key, &[]);
    modes::require_lock(&key, &look)?;
    let refuse = |why| Refusal::Permits {
        key: key.clone(),
        why,
    };
    let pool = match look.pool() {
        Some(pool) => pool,
        None if look.is_free() => return Err(refuse(NoPermits::Free)),
        None => return Err(refuse(NoPermits::OtherKind)),
    };
    if limit == pool.limit {
        return Ok(limit);
    }
    let now = Pool { limit, ..pool };
    d.write(&key, Write::SetPool(now));
    see(d, &key, now);
    if limit < pool.limit {
        let above = refuse(NoPermits::AboveLimit(now));
        let wants_more = Which::WantsMore(limit);
        d.core.queues.send_away(&key, wants_more, &above);
    }
    d.look_later(&key);
    Ok(pool.limit)
}
