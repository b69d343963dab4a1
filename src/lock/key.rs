//! Names as the core passes them around: cheap to clone, compared by content.

use std::rc::Rc;

/// An immutable byte string, shared: a key's name, any bytes.
pub type Bytes = Rc<[u8]>;

/// Where a lock lives: a key name in a numbered database.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub db: i32,
    pub name: Bytes,
}

impl Key {
    pub fn new(db: i32, name: &[u8]) -> Self {
        Self {
            db,
            name: Bytes::from(name),
        }
    }
}
