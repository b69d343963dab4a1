//! A fencing token.

/// What storage can refuse a former holder by: of two holds of a lock the later one has the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Token(pub i64);

impl Token {
    /// All that are given are greater.
    pub const BEFORE_FIRST: Self = Self(0);

    /// The greatest that is given or taken: what a double counts exactly.
    pub const MOST: Self = Self((1 << 53) - 1);

    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}
