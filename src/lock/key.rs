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

/// Where a database is after two were exchanged.
pub fn exchanged(db: i32, one: i32, other: i32) -> i32 {
    match db {
        db if db == one => other,
        db if db == other => one,
        db => db,
    }
}

impl Key {
    pub fn new(db: i32, name: &[u8]) -> Self {
        Self {
            db,
            name: Bytes::from(name),
        }
    }
}
