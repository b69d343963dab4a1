//! What `rlock` exits with, and why.

use std::fmt;
use std::process::ExitCode;

/// `force` freed nothing, or `who` found nobody.
pub const NOTHING: u8 = 1;
pub const NOT_ACQUIRED: u8 = 115;
pub const LOST: u8 = 116;
pub const UNREACHABLE: u8 = 117;
pub const REFUSED: u8 = 118;
/// As `timeout`, `env` and `nice` have it: of these three the first is `rlock`'s own.
pub const USAGE: u8 = 125;
pub const CANNOT_RUN: u8 = 126;
pub const NO_COMMAND: u8 = 127;

/// A line for people and a number for scripts.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub text: String,
}

pub type Outcome = Result<ExitCode, Failure>;

impl Failure {
    pub fn new(code: u8, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { code, text }
    }

    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(USAGE, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<redis::RedisError> for Failure {
    fn from(error: redis::RedisError) -> Self {
        match rlock_client::Error::from_redis(&error) {
            rlock_client::Error::Connection(text) => Self::new(UNREACHABLE, text),
            error => error.into(),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(USAGE, error.to_string())
    }
}

impl From<rlock_client::Error> for Failure {
    fn from(error: rlock_client::Error) -> Self {
        use rlock_client::Error as E;
        let code = match &error {
            E::NotAcquired { .. } => NOT_ACQUIRED,
            E::Lost(_) => LOST,
            E::Connection(_) => UNREACHABLE,
            E::Argument(_) => USAGE,
            _ => REFUSED,
        };
        let text = match error.or_cluster() {
            E::Refused { code, .. } if code == "MOVED" => {
                "the server refused: MOVED it is a node of a cluster, which rlock does not lock in"
                    .into()
            }
            error => error.to_string(),
        };
        Self::new(code, text)
    }
}
