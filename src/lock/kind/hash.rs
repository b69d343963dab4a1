//! A hash that can be read, and what the fields of locks of any kind have in common.

/// A hash that can be read.
pub trait Hash {
    /// How many fields it has, or had: some may have run out.
    fn len(&self) -> usize;
    /// Reads one field, if it is there.
    fn field<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T>;
    /// Those that are found in about so many steps, where the hash can be read in parts.
    fn some_fields(&self, steps: usize) -> Vec<(Vec<u8>, Vec<u8>)>;
    fn fields(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.some_fields(usize::MAX)
    }
}

/// The field of a lock that several may hold: of which kind it is.
pub const MODE: &[u8] = b"mode";

/// A writer's field is its owner's id with this behind it.
pub const WRITER: &[u8] = b":write";

/// So many fields are looked at before all are read: most of what is no lock shows by them.
pub const FEW_FIELDS: usize = 128;

/// Whether somebody can hold a lock by this name that several may hold: any other would be
/// taken for a field of another meaning.
pub fn is_owner(name: &[u8]) -> bool {
    !name.is_empty() && name != MODE && !name.ends_with(WRITER)
}

/// A number of holds: a positive integer as the server writes it. HINCRBY, by which Redisson
/// counts, takes no other.
pub fn count(value: &[u8]) -> Option<i64> {
    if !matches!(value.first(), Some(b'1'..=b'9')) {
        return None;
    }
    let add = |number: i64, byte: &u8| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    };
    value.iter().try_fold(0, add)
}

/// The same, or 0.
pub fn whole(value: &[u8]) -> Option<i64> {
    (value == b"0").then_some(0).or_else(|| count(value))
}
