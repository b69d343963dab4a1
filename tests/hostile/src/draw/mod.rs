//! Draws commands: most are nearly right, many are hostile.

mod others;
mod rlock;
mod server;
mod words;

use fastrand::Rng;

pub type Args = Vec<Vec<u8>>;

/// The channels of sessions begin so.
pub const SESSION: &str = "s:";

/// The arguments of a command, of strings and bytes.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => { vec![$(AsRef::<[u8]>::as_ref(&$arg).to_vec()),*] };
}

/// What is drawn from.
pub struct Draw {
    pub rng: Rng,
    /// Leases are so long that none ends while one looks, and nobody is a blocked waiter.
    pub calm: bool,
    /// The channel of the connection that is drawn for, if it has a session.
    pub channel: Option<String>,
    /// Only these names are drawn, if any are given.
    pub names: &'static [&'static str],
    /// Tokens, dumps and client ids that were seen of late.
    pub tokens: Vec<i64>,
    pub dumps: Vec<Vec<u8>>,
    pub ids: Vec<i64>,
    /// Redis until 8.0 or Valkey until 8.0, which CLIENT UNBLOCK of who is paused ends.
    pub is_old: bool,
    /// The last tag.
    tag: u64,
}

impl Draw {
    pub fn new(seed: u64, calm: bool) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            calm,
            channel: None,
            names: &[],
            tokens: vec![1],
            dumps: Vec::new(),
            ids: vec![1],
            is_old: false,
            tag: 0,
        }
    }

    /// One of `of` times.
    pub fn once_in(&mut self, of: u32) -> bool {
        self.rng.u32(0..of) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(0..from.len())]
    }

    /// Any command that is no control of the connection itself.
    pub fn command(&mut self) -> Args {
        match self.rng.u32(0..1000) {
            0..600 => self.rlock(),
            600..940 => self.other(),
            940..985 => self.script(),
            _ => self.of_the_server(),
        }
    }

    pub fn saw_token(&mut self, token: i64) {
        remember(&mut self.rng, &mut self.tokens, token);
    }

    pub fn saw_dump(&mut self, dump: Vec<u8>) {
        remember(&mut self.rng, &mut self.dumps, dump);
    }
}

fn remember<T>(rng: &mut Rng, all: &mut Vec<T>, one: T) {
    if all.len() < 32 {
        all.push(one);
    } else {
        let at = rng.usize(0..all.len());
        all[at] = one;
    }
}
