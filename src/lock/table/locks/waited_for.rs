//! What is remembered of a lock for it is waited for.

use super::Locks;
use crate::lock::Key;

impl Locks {
    /// Somebody waits for the key from now on, or nobody any more.
    pub fn set_waited_for(&mut self, key: &Key, on: bool) {
        if on {
            self.set_presumed(key, None);
            self.get_or_new(key);
        }
        self.change(key, |entry| entry.waited_for = on);
        if !on {
            // When what is no lock ends matters to those who wait for it.
            if self.get(key).is_some_and(|entry| entry.foreign) {
                self.set_deadline(key, None);
            }
            self.tidy(key);
        }
    }

    /// Counts hand-overs up to so many; whether this was the first of them.
    pub fn passes(&mut self, key: &Key, most: u8) -> bool {
        let Some(entry) = self.get_mut(key) else {
            return false;
        };
        let is_first = entry.passes == 0;
        let next = entry.passes.wrapping_add(1);
        entry.passes = next.checked_rem(most).unwrap_or(0);
        is_first
    }

    /// Whether the owner is known to hold permits of the lock.
    pub fn has_permits(&self, key: &Key, owner: &[u8]) -> bool {
        let hold = self.sharer(key, owner);
        hold.is_some_and(|hold| hold.has_permits)
    }

    /// An owner that holds permits of the lock waits for it too, or does not any more.
    pub fn set_waits(&mut self, key: &Key, owner: &[u8], on: bool) {
        let hold = self.sharer(key, owner);
        if hold.is_some_and(|hold| hold.has_permits && hold.waits != on) {
            self.change_shared(key, |shared| {
                shared.change(owner, |hold| hold.waits = on);
            });
        }
    }
}
