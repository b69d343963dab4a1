//! Names as the core passes them around: cheap to clone, compared by content.

use std::rc::Rc;

/// An immutable byte string, shared: a key's name, any bytes.
pub type Bytes = Rc<[u8]>;

/// A longer name is not written over: its memory would be kept for one that may never come again.
const MOST_SPARE: usize = 1024;

/// What one decision needs a shared name for and no longer, as most do, the next one writes its own
/// over: names of one use are often of one length.
#[derive(Clone, Debug, Default)]
pub struct Spare(Bytes);

impl Spare {
    /// These bytes, shared.
    pub fn of(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > MOST_SPARE {
            return Bytes::from(bytes);
        }
        match Rc::get_mut(&mut self.0) {
            Some(unused) if unused.len() == bytes.len() => unused.copy_from_slice(bytes),
            _ => self.0 = Bytes::from(bytes),
        }
        self.0.clone()
    }
}

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

/// So many places there are for names, where something is kept of those that were used last, or
/// is counted.
pub const PLACES: usize = 1024;

/// The place of a name, by its last bytes and its length: names of one kind differ there.
pub fn place(name: &[u8]) -> usize {
    let last = match name.last_chunk() {
        Some(last) => u32::from_le_bytes(*last),
        None => name.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)),
    };
    let len = (name.len() as u32).rotate_left(16);
    ((last ^ len).wrapping_mul(SPREAD) >> 22) as usize
}

/// Odd, so that each bit of a name has its part in the first ones.
const SPREAD: u32 = 0x9E37_79B1;
