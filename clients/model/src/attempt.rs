//! What a client knows of one attempt to get the lock, and of the hold that it became.

use crate::state::{SERVERS, Token};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    #[default]
    Idle,
    /// It has asked the servers for the lock.
    Asking,
    /// A majority has granted: the token is fixed, and is made known by FENCE.
    Fixed,
    /// The hold was given to the program.
    Held,
    /// Given up, released or lost.
    Over,
}

/// Too long ago to count, or never.
pub const NEVER: u8 = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt {
    pub phase: Phase,
    /// For how long it has been under way, in ticks.
    pub since: u8,
    /// The greatest that it knows of; from Fixed on its own.
    pub token: Token,
    /// The servers whose grant it knows of, one bit each; from Fixed on those that FENCE
    /// was sent to.
    pub servers: u8,
    /// Those that RELEASE was sent to.
    pub released: u8,
    /// The servers that count, and for how long now.
    pub counted: [u8; SERVERS],
    /// How long ago the RENEW was sent whose answer is under way from this server.
    pub sent: [u8; SERVERS],
    /// The hold was given to the program, at some time.
    pub given: bool,
    /// The program was notified that the hold is lost, or should have been.
    pub lapsed: bool,
    /// A token was given before its own was fixed that is not smaller.
    pub behind: bool,
}

impl Default for Attempt {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            since: 0,
            token: 0,
            servers: 0,
            released: 0,
            counted: [NEVER; SERVERS],
            sent: [NEVER; SERVERS],
            given: false,
            lapsed: false,
            behind: false,
        }
    }
}

impl Attempt {
    pub fn counts(&self) -> usize {
        self.counted.iter().filter(|age| **age != NEVER).count()
    }

    /// It is over: the client remembers nothing. What it has sent may come yet.
    pub fn end(&mut self, released: u8) {
        *self = Self {
            phase: Phase::Over,
            token: self.token,
            servers: self.servers,
            released: self.released | released,
            given: self.given,
            ..Self::default()
        };
    }

    /// A tick goes by. After `validity` of them a server does not count any more, and an answer
    /// is of no use, if it is `from_before` it that one counts.
    pub fn pass(&mut self, validity: u8, from_before: bool) {
        let older = |age: u8| if age + 1 < validity { age + 1 } else { NEVER };
        for age in self.counted.iter_mut().filter(|age| **age != NEVER) {
            *age = older(*age);
        }
        for age in self
            .sent
            .iter_mut()
            .filter(|age| **age != NEVER && from_before)
        {
            *age = older(*age);
        }
        if matches!(self.phase, Phase::Asking | Phase::Fixed) {
            self.since = (self.since + 1).min(validity);
        }
    }
}
