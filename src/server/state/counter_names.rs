//! The names of counters that were looked for last, as the server takes them: each hold that
//! begins looks for one, and making its name costs more than that.

use std::cell::Cell;

use crate::redisson;
use crate::server::sys::Text;

/// By the last byte of the lock's name.
const REMEMBERED: usize = 16;

/// Longer names are made each time.
const SHORT: usize = 256;

#[derive(Default)]
pub struct CounterNames([Cell<Option<Text<'static>>>; REMEMBERED]);

impl CounterNames {
    /// Looks with the name of a lock's counter. `None`: the server cannot make it.
    pub fn with<T>(&self, lock: &[u8], look: impl FnOnce(&Text<'_>) -> T) -> Option<T> {
        let last = lock.last().filter(|_| lock.len() <= SHORT);
        let place = last.map_or(0, |byte| usize::from(*byte) % REMEMBERED);
        let place = self.0.get(place).filter(|_| last.is_some());
        // Taken out meanwhile: the look may lead to another one.
        let known = place.and_then(Cell::take);
        let known = known.filter(|name| redisson::is_counter_of(name.bytes(), lock));
        let name = known.or_else(|| Text::new(&redisson::counter(lock)))?;
        let found = look(&name);
        if let Some(place) = place {
            place.set(Some(name));
        }
        Some(found)
    }
}
