//! At which keys what others do is to be heard (`Entry::is_heard`).

use super::Locks;

impl Locks {
    /// Whether what others do to a key by this name is to be heard.
    pub fn hears(&self, db: i32, name: &[u8]) -> bool {
        let table = self.tables.get(db);
        let known = table.and_then(|table| table.entries.get(name));
        known.is_some_and(|(_, entry)| entry.is_heard())
    }

    /// `false`: there is no such name.
    pub fn may_hear(&self, name: &[u8]) -> bool {
        self.heard.lets_through(name)
    }

    /// Whether there is any such key.
    pub fn hears_any(&self) -> bool {
        !self.heard.is_empty()
    }

    /// Whether any lock is known that several may hold.
    pub fn any_shared(&self) -> bool {
        !self.lengths.is_empty()
    }
}
