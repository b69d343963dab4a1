//! One key is open at a time, and for a plain lock it is opened once: the handle of the
//! look is used again for the write. A read/write lock has a hash and lease keys, and
//! opening one may expire it and run the callbacks of others, so the hash is read first,
//! closed, and opened again if there is something to write.

use std::ops::Deref;

use crate::lock::kind::Hash;
use crate::lock::Key;
use crate::redisson;
use crate::server::sys::{Access, Ctx, FirstArgs, OpenKey, Selected, Text};

/// The key that is open, if one is.
pub struct OneKey<'a> {
    pub ctx: Ctx<'a>,
    pub given: FirstArgs<'a>,
    access: Access,
    open: Option<KeyHandle<'a>>,
}

/// The handle of an open key, and which key it is.
pub struct KeyHandle<'a> {
    key: Key,
    pub name: Text<'a>,
    opened: OpenKey<'a>,
    given: FirstArgs<'a>,
    /// The database it lives in stays selected: the server's calls on a handle
    /// and the replication of its writes go by the context's database.
    _db: Selected<'a>,
}

impl<'a> Deref for KeyHandle<'a> {
    type Target = OpenKey<'a>;

    fn deref(&self) -> &OpenKey<'a> {
        &self.opened
    }
}

/// Read as the hash that a lock is.
impl Hash for KeyHandle<'_> {
    fn len(&self) -> usize {
        self.opened.len()
    }

    fn field<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let value = self.opened.field(&self.given.text(name)?)?;
        Some(read(value.bytes()))
    }

    fn some_fields(&self, steps: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.opened.fields_within(steps)
    }
}

impl<'a> OneKey<'a> {
    pub fn new(ctx: Ctx<'a>, access: Access, given: FirstArgs<'a>) -> Self {
        Self {
            ctx,
            given,
            access,
            open: None,
        }
    }

    /// Closes the key that is open, before anything runs that may change it.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// The handle of a key, opened unless it is the one that is open. `None`:
    /// it does not exist (or cannot be opened).
    pub fn open(&mut self, key: &Key) -> Option<&KeyHandle<'a>> {
        if self.open.as_ref().is_none_or(|open| open.key != *key) {
            self.open = None;
            let name = self.given.text(&key.name)?;
            let db = Selected::new(self.ctx, key.db);
            self.open = Some(KeyHandle {
                key: key.clone(),
                opened: OpenKey::new(self.ctx, &name, self.access)?,
                name,
                given: self.given,
                _db: db,
            });
        }
        self.open.as_ref()
    }

    /// The lease key of a read hold, opened.
    pub fn open_lease(&mut self, key: &Key, owner: &[u8], index: i64) -> Option<&KeyHandle<'a>> {
        let name = redisson::lease_key(&key.name, owner, index);
        self.open(&Key::new(key.db, &name))
    }
}
