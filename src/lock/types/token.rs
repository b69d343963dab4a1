//! A fencing token.

/// What storage can refuse a former holder by: of two holds the later one has the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Token(pub i64);

impl Token {
    /// All that are given are greater.
    pub const BEFORE_FIRST: Self = Self(0);

    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}
