//! Which server the tests run on.

use std::env;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    Redis,
    Valkey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub flavour: Flavour,
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// Whether a field of a hash can have a TTL of its own.
    pub fn ends_fields(&self) -> bool {
        match self.is_valkey() {
            true => self.at_least(9, 0),
            false => self.at_least(7, 4),
        }
    }

    pub fn new(flavour: Flavour, text: &str) -> Self {
        let mut numbers = text.split('.').map(|part| part.parse().expect("a number"));
        let mut next = || numbers.next().expect("major.minor");
        Self {
            flavour,
            major: next(),
            minor: next(),
        }
    }

    /// Of the server that tests start, as it says without being started.
    pub fn installed() -> Self {
        let server = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let said = Command::new(server).arg("--version").output();
        let said = String::from_utf8(said.expect("a server").stdout).expect("text");
        let flavour = match said.starts_with("Valkey") {
            true => Flavour::Valkey,
            false => Flavour::Redis,
        };
        let version = said
            .split_once("v=")
            .and_then(|(_, rest)| rest.split(' ').next());
        Self::new(flavour, version.expect("a version"))
    }

    pub fn is_valkey(self) -> bool {
        self.flavour == Flavour::Valkey
    }

    /// Whether it has what came with this version, of Redis before the fork or
    /// of its own flavour: all of Valkey has what Redis 7.2 has.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}
