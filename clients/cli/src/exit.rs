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
        let server = error.code().is_some();
        let denied = error.kind() == redis::ErrorKind::AuthenticationFailed;
        let code = if server || denied {
            REFUSED
        } else {
            UNREACHABLE
        };
        let text = match (error.code(), error.detail()) {
            (Some(code), Some(text)) => format!("the server refused: {code} {text}"),
            _ => error.to_string(),
        };
        Self { code, text }
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
            E::NotAcquired => NOT_ACQUIRED,
            E::Lost(_) => LOST,
            E::Connection(_) => UNREACHABLE,
            E::Argument(_) => USAGE,
            _ => REFUSED,
        };
        Self::new(code, error.to_string())
    }
}
