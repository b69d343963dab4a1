//! What can go wrong, and why a hold was lost.

use std::fmt;

use redis::RedisError;

/// Why an acquisition, a release or a renewal failed.
///
/// ```
/// use rlock_client::{Error, Reason};
/// assert_eq!(Error::Lost(Reason::Forced).to_string(), "the lock was lost: forced");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Somebody else has it, and had it for the whole wait.
    NotAcquired,
    /// The hold was lost: from some moment on the program was not alone.
    Lost(Reason),
    /// Waiting would close a cycle of owners who wait for each other. The server's text.
    Deadlock(String),
    /// The same [`Job`](crate::Job) holds this key, or waits for it:
    /// [`Hold::again`](crate::Hold::again) is what nests.
    HeldByJob(String),
    /// Another error of the server.
    Refused {
        /// Its first word, such as `NOREPLICAS`, `OOM`, `WRONGTYPE` or `NOPERM`.
        code: String,
        /// The words after that.
        text: String,
    },
    /// There was no connection within the time. What went wrong last.
    Connection(String),
    /// An argument cannot be. Nothing was sent.
    Argument(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAcquired => f.write_str("somebody else has the lock"),
            Self::Lost(reason) => write!(f, "the lock was lost: {reason}"),
            Self::Deadlock(text) => write!(f, "deadlock: {text}"),
            Self::HeldByJob(key) => write!(f, "the same job holds {key:?}, or waits for it"),
            Self::Refused { code, text } => write!(f, "the server refused: {code} {text}"),
            Self::Connection(text) => write!(f, "no connection: {text}"),
            Self::Argument(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The server's own error, by its code and what follows it.
    pub(crate) fn from_server(code: &str, text: &str) -> Self {
        match code {
            "DEADLOCK" => Self::Deadlock(text.into()),
            "NOTHELD" => Self::Lost(Reason::Expired),
            _ => Self::Refused {
                code: code.into(),
                text: text.into(),
            },
        }
    }

    pub(crate) fn from_redis(error: &RedisError) -> Self {
        match error.code() {
            Some(code) => Self::from_server(code, error.detail().unwrap_or_default()),
            None if error.kind() == redis::ErrorKind::AuthenticationFailed => {
                Self::from_server("WRONGPASS", &error.to_string())
            }
            None => Self::Connection(error.to_string()),
        }
    }

    pub(crate) fn closed() -> Self {
        Self::Connection("the locks were closed".into())
    }

    /// Whether it says that another node has the slot, or will have it soon.
    pub(crate) fn is_elsewhere(&self) -> bool {
        const CODES: [&str; 4] = ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"];
        matches!(self, Self::Refused { code, .. } if CODES.contains(&code.as_str()))
    }

    /// Of a connection that could not be had: whether there is no use in trying on, as for a
    /// wrong password or a database that there is not.
    pub(crate) fn is_for_good(&self) -> bool {
        let Self::Refused { code, text } = self else {
            return false;
        };
        // Of the errors without a code of their own those that SELECT replies.
        if code == "ERR" {
            return text.contains("DB index") || text.starts_with("SELECT is not allowed");
        }
        !self.is_no_master() && !self.is_elsewhere()
    }

    /// Whether the server has just started and grants nothing yet: `rlock.grant-after`.
    pub(crate) fn is_not_yet(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "NOTYET")
    }

    /// Whether it says that this server is no master now: the address may soon lead to one.
    pub(crate) fn is_no_master(&self) -> bool {
        let Self::Refused { code, text } = self else {
            return false;
        };
        match code.as_str() {
            "READONLY" | "MASTERDOWN" | "LOADING" => true,
            "UNBLOCKED" => !text.starts_with("superseded"),
            _ => false,
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $word:literal,)*) => {
        /// Why a hold was lost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// The word for it, as the server writes it.
            ///
            /// ```
            /// assert_eq!(rlock_client::Reason::Connection.as_str(), "connection");
            /// ```
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            pub(crate) fn from_word(word: &str) -> Self {
                match word { $($word => Self::$name,)* _ => Self::Other }
            }
        }
    };
}

reasons! {
    /// Its lease ran out on the server.
    Expired "expired",
    /// An operator freed it (`RLOCK.FORCE`).
    Forced "forced",
    /// Its key was deleted.
    Deleted "deleted",
    /// The server evicted its key.
    Evicted "evicted",
    /// The database was flushed.
    Flushed "flushed",
    /// Something else was written over its key.
    Overwritten "overwritten",
    /// The server became a replica.
    Demoted "demoted",
    /// Its slot moved to another node.
    Moved "moved",
    /// Its owner asked for it by another connection.
    Rebound "rebound",
    /// Its owner released it by another connection.
    Released "released",
    /// The connection was lost, or proved dead.
    Connection "connection",
    /// It was held for as long as [`Acquire::max`](crate::Acquire::max) allows.
    Max "max",
    /// The [`Locks`](crate::Locks) were closed.
    Closed "closed",
    /// Its deadline passed in this process.
    Lease "lease",
    /// The server named a reason that this client does not know.
    Other "other",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
