//! Which server the tests run on.

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
    pub fn new(flavour: Flavour, text: &str) -> Self {
        let mut numbers = text.split('.').map(|part| part.parse().expect("a number"));
        let mut next = || numbers.next().expect("major.minor");
        Self {
            flavour,
            major: next(),
            minor: next(),
        }
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
