//! The keys that a request wants.

use std::ops::Deref;
use std::rc::Rc;

use crate::lock::Key;

/// One, or for MACQUIRE several; each once. There are very many lists of one.
#[derive(Clone, Debug)]
pub enum Keys {
    One(Key),
    /// Shared, for there may be very many, and no wider than the key beside it.
    Many(Rc<Vec<Key>>),
}

impl Deref for Keys {
    type Target = [Key];

    fn deref(&self) -> &[Key] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Many(keys) => keys,
        }
    }
}

impl<'a> IntoIterator for &'a Keys {
    type Item = &'a Key;
    type IntoIter = std::slice::Iter<'a, Key>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Key> for Keys {
    fn from(key: Key) -> Self {
        Self::One(key)
    }
}

impl From<Vec<Key>> for Keys {
    fn from(keys: Vec<Key>) -> Self {
        match <[Key; 1]>::try_from(keys) {
            Ok([key]) => Self::One(key),
            Err(keys) => Self::Many(Rc::new(keys)),
        }
    }
}
