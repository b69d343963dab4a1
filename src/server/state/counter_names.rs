//! The names of counters that were looked for last, as the server takes them: each hold that
//! begins looks for one, and making its name costs more than that.

use std::cell::Cell;

use crate::lock::{place, PLACES};
use crate::redisson;
use crate::server::sys::Text;

/// Longer names are made each time.
const SHORT: usize = 256;

type Remembered = Cell<Option<Text<'static>>>;

/// Each in the place of its lock's name: some 100 KB.
pub struct CounterNames(Box<[Remembered]>);

impl Default for CounterNames {
    fn default() -> Self {
        let none = std::iter::repeat_with(Cell::default);
        Self(none.take(PLACES).collect())
    }
}

impl CounterNames {
    /// Looks with the name of a lock's counter. `None`: the server cannot make it.
    pub fn with<T>(&self, lock: &[u8], look: impl FnOnce(&Text<'_>) -> T) -> Option<T> {
        let place = self.0.get(place(lock)).filter(|_| lock.len() <= SHORT);
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
