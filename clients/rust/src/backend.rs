//! What a server has that its locks are made with.

use std::fmt;

/// What a server has: see [`Locks::backend`](crate::Locks::backend).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The module rlock.
    Module,
    /// rlock's function library, which the client loads.
    Functions,
    /// The same library as a script: functions are unknown there, or refused to this user.
    Script,
}

impl Backend {
    /// The word for it.
    ///
    /// ```
    /// assert_eq!(rlock_client::Backend::Functions.as_str(), "functions");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Functions => "functions",
            Self::Script => "script",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
