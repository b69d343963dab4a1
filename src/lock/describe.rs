//! What INFO tells of a lock beyond what its key says.

use super::{Core, Now};

/// A lock's queue, and what is known of one holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Description {
    pub waiters: usize,
    /// How long the first in the queue has waited, ms.
    pub oldest_wait_ms: Option<i64>,
}

impl Core {
    /// The queue of a key.
    pub fn describe(&self, now: Now, db: i32, name: &[u8]) -> Description {
        let Some(entry) = self.tables.get(&db).and_then(|t| t.get(name)) else {
            return Description::default();
        };
        let oldest = entry.queue.first().and_then(|id| self.waiters.get(id));
        Description {
            waiters: entry.queue.len(),
            oldest_wait_ms: oldest.map(|w| now.mono_us.saturating_sub(w.since).div_euclid(1000)),
        }
    }

    /// The token of an owner's hold under way and for how many ms it has been
    /// held, where this server knows.
    pub fn hold_of(&self, now: Now, db: i32, name: &[u8], owner: &[u8]) -> Option<(i64, i64)> {
        let entry = self.tables.get(&db).and_then(|t| t.get(name))?;
        let hold = entry.hold(owner)?;
        let held_ms = now
            .wall_us
            .saturating_sub(hold.since_us)
            .div_euclid(1000)
            .max(0);
        Some((hold.token, held_ms))
    }
}
