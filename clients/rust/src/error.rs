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
    NotAcquired {
        /// The key; of several the first.
        key: String,
        /// The owner, if a hold of these very [`Locks`](crate::Locks) has it.
        held_by: Option<String>,
    },
    /// The hold was lost: from some moment on the program was not alone.
    Lost(Reason),
    /// Waiting would close a cycle of owners who wait for each other. The server's text.
    Deadlock(String),
    /// The same [`Job`](crate::Job) holds this key, or waits for it:
    /// [`Hold::again`](crate::Hold::again) is what nests.
    HeldByJob(String),
    /// A use of this [sticky lock](crate::Locks::sticky) within a use of it would wait for itself.
    UseWithin(String),
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
            Self::NotAcquired { key, held_by: None } => {
                write!(f, "somebody else has the lock {key:?}")
            }
            Self::NotAcquired {
                key,
                held_by: Some(owner),
            } => write!(f, "another hold of this program has {key:?}, as {owner}"),
            Self::Lost(reason) => write!(f, "the lock was lost: {reason}"),
            Self::Deadlock(text) => write!(f, "deadlock: {text}"),
            Self::HeldByJob(key) => write!(f, "the same job holds {key:?}, or waits for it"),
            Self::UseWithin(key) => {
                write!(
                    f,
                    "a use of {key:?} within a use of it would wait for itself"
                )
            }
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
            _ => {
                let (code, text) = match code {
                    "ERR" if is_unknown(text) => ("ERR", NO_MODULE),
                    // From inside a function or a script.
                    "ERR" if text.starts_with("ACL failure") => ("NOPERM", text),
                    "ERR" if text.starts_with("The user executing") => ("NOPERM", text),
                    _ => (code, text),
                };
                Self::Refused {
                    code: code.into(),
                    text: text.into(),
                }
            }
        }
    }

    /// For the command line.
    #[doc(hidden)]
    pub fn from_redis(error: &RedisError) -> Self {
        match error.code() {
            Some(code) => Self::from_server(code, error.detail().unwrap_or_default()),
            None if error.kind() == redis::ErrorKind::AuthenticationFailed => {
                Self::from_server("WRONGPASS", &error.to_string())
            }
            // There is no use in trying again.
            None if error.kind() == redis::ErrorKind::InvalidClientConfig => {
                Self::Argument(with_feature(error))
            }
            None => Self::Connection(error.to_string()),
        }
    }

    pub(crate) fn closed() -> Self {
        Self::Connection("the locks were closed".into())
    }

    pub(crate) fn forked() -> Self {
        Self::Connection("it is of the process that this one was forked from".into())
    }

    pub(crate) fn no_module() -> Self {
        Self::from_server("ERR", NO_MODULE)
    }

    pub(crate) fn no_shards() -> Self {
        Self::from_server("ERR", NO_SHARDS)
    }

    pub(crate) fn says(&self, part: &str) -> bool {
        matches!(self, Self::Refused { text, .. } if text.contains(part))
    }

    /// Whether the server does not know the command at all.
    pub(crate) fn is_unknown_command(&self) -> bool {
        self.says("unknown command") || self.says("unknown subcommand") || self.says(NO_MODULE)
    }

    /// Whether the server does not let this user say the command.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "NOPERM")
    }

    /// Whether the server has no library, or not any more: nothing was done.
    #[doc(hidden)]
    pub fn is_unknown_function(&self) -> bool {
        let Self::Refused { code, text } = self else {
            return false;
        };
        code == "NOSCRIPT" || text.starts_with("Function not found")
    }

    /// What it says without the module, where nobody says why a lock is gone.
    pub(crate) fn or_deleted(self) -> Self {
        match self {
            Self::Lost(Reason::Expired) => Self::Lost(Reason::Deleted),
            error => error,
        }
    }

    /// Of a command about a hold.
    pub(crate) fn or_overwritten(self) -> Self {
        match self {
            Self::Refused { code, .. } if code == "WRONGTYPE" => Self::Lost(Reason::Overwritten),
            error => error,
        }
    }

    /// Of a server that is no cluster to this session, and says that it is one.
    #[doc(hidden)]
    pub fn or_cluster(self) -> Self {
        match self {
            Self::Refused { code, text } if code == "MOVED" || text.contains("SSUBSCRIBE") => {
                let (code, text) = ("MOVED".into(), A_CLUSTER.into());
                Self::Refused { code, text }
            }
            error => error,
        }
    }

    /// Whether it says that another node has the slot, or will have it soon.
    pub(crate) fn is_elsewhere(&self) -> bool {
        const CODES: [&str; 4] = ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"];
        matches!(self, Self::Refused { code, .. } if CODES.contains(&code.as_str()))
    }

    /// Of a connection that could not be opened: whether there is no use in trying on, as for a
    /// wrong password or a database that there is not.
    pub(crate) fn is_for_good(&self) -> bool {
        let (code, text) = match self {
            Self::Refused { code, text } => (code, text),
            // Such as one for another name, or of an authority that is not known.
            Self::Connection(text) => return text.contains("certificate"),
            _ => return matches!(self, Self::Argument(_)),
        };
        // Of the errors without a code of their own those that SELECT replies.
        if code == "ERR" {
            return text == NO_MODULE
                || text == NO_SHARDS
                || text.contains("DB index")
                || text.starts_with("SELECT is not allowed");
        }
        // A script that runs too long ends.
        code != "BUSY" && !self.is_no_master() && !self.is_elsewhere()
    }

    /// Whether a newer request of the same owner took the place.
    pub(crate) fn is_superseded(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "SUPERSEDED")
    }

    /// Whether the server has just started and grants nothing yet: `rlock.grant-after`.
    pub(crate) fn is_not_yet(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "NOTYET")
    }

    /// Whether it says that this server is no master now: the address may soon lead to one.
    pub(crate) fn is_no_master(&self) -> bool {
        let Self::Refused { code, .. } = self else {
            return false;
        };
        let no_master = ["READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED"];
        no_master.contains(&code.as_str())
    }
}

const A_CLUSTER: &str =
    "this server is a node of a cluster: give Locks a cluster client (Locks::cluster)";

const NO_SHARDS: &str =
    "a cluster needs Redis 7.0 or newer, or Valkey: this server has no sharded pub/sub";

const NO_MODULE: &str =
    "the server has no rlock module: load librlock.so (loadmodule), see the README";

/// Whether the server does not know a command of rlock's.
fn is_unknown(text: &str) -> bool {
    text.starts_with("unknown command") && text.to_uppercase().contains("RLOCK.")
}

/// redis-rs does not name what would have to be switched on here.
fn with_feature(error: &RedisError) -> String {
    let text = error.to_string();
    let mut hint = "";
    if !cfg!(any(feature = "tls-rustls", feature = "tls-native-tls")) && text.contains("TLS") {
        hint = ": rediss:// needs the feature tls-rustls (or tls-native-tls) of rlock-client";
    }
    text + hint
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
    /// This process was not heard of for its [patience](crate::Locks::patience), and somebody waited.
    Silent "silent",
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
    /// This process was forked from the one that has it.
    Fork "fork",
    /// The server named a reason that this client does not know.
    Other "other",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
