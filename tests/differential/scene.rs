//! What a sequence of steps is about: a few locks, a few owners, leases.

use super::step::Bytes;
use crate::support::Random;

/// Names of locks: with and without a hash tag, such as share lease keys with one
/// another, bytes that are no text, nothing at all.
const LOCKS: [&[u8]; 7] = [b"job", b"{a}", b"{a}:b", b"\x00\xff\r\n*", b"x}", b"", b"7"];

/// `b:c` under `{a}` and `c` under `{a}:b` have the same lease keys.
const OWNERS: [&[u8]; 6] = [b"o", b"u-1:7", b"b:c", b"c", b"\xfe\x00'\\", b"write"];

/// A lease that ends before the next step, ms: long enough that both servers answer
/// within it.
pub const SHORT: &str = "40";

/// Far apart, so that no mistake in one looks like another.
pub const LEASES: [&str; 5] = ["100000", "200000", "300000", "400000", "1000000000"];

/// Those who use one lock in two ways get little done.
const MODES: [&[Option<&str>]; 7] = [
    &[None],
    &[Some("READ"), Some("READ"), Some("WRITE")],
    &[Some("READ"), Some("WRITE")],
    &[None, Some("READ"), Some("READ"), Some("WRITE")],
    &[PERMITS],
    &[PERMITS],
    &[PERMITS, PERMITS, None, Some("READ"), Some("WRITE")],
];

const PERMITS: Option<&str> = Some("PERMITS");

pub struct Scene {
    pub locks: Vec<Bytes>,
    pub owners: Vec<Bytes>,
    /// Others meddle with counters alone, and badly.
    pub spoils_counters: bool,
    pub modes: &'static [Option<&'static str>],
    /// The limit of permits that most requests say.
    pub limit: usize,
    /// The last acquisitions, whatever became of them.
    tried: Vec<Tried>,
}

/// What somebody wanted.
#[derive(Clone, Debug)]
pub struct Tried {
    pub locks: Vec<Bytes>,
    pub owner: Bytes,
    pub mode: Option<&'static str>,
}

impl Scene {
    pub fn new(random: &mut Random) -> Self {
        let some = |random: &mut Random, all: &[&[u8]], count: usize| {
            let mut all: Vec<Bytes> = all.iter().map(|one| one.to_vec()).collect();
            while all.len() > count {
                all.swap_remove(random.below(all.len()));
            }
            all
        };
        let locks = 1 + random.below(3);
        let owners = 2 + random.below(2);
        Self {
            locks: some(random, &LOCKS, locks),
            owners: some(random, &OWNERS, owners),
            spoils_counters: random.one_in(6),
            modes: MODES[random.below(MODES.len())],
            limit: 2 + random.below(2),
            tried: Vec::new(),
        }
    }

    /// Some hold by permits.
    pub fn has_permits(&self) -> bool {
        self.modes.contains(&PERMITS)
    }

    pub fn lock(&self, random: &mut Random) -> Bytes {
        random.of(&self.locks).clone()
    }

    /// Some of the locks, in any order.
    pub fn some_locks(&self, random: &mut Random) -> Vec<Bytes> {
        let mut all = self.locks.clone();
        let count = 1 + random.below(all.len());
        (0..count)
            .map(|_| all.swap_remove(random.below(all.len())))
            .collect()
    }

    pub fn remember(&mut self, tried: &Tried) {
        if self.tried.len() > 4 {
            self.tried.remove(0);
        }
        self.tried.push(tried.clone());
    }

    /// One of the last acquisitions, of several locks or of one. Who asks for a
    /// release asks seldom again.
    pub fn tried(&mut self, random: &mut Random, many: bool, release: bool) -> Option<Tried> {
        if self.tried.is_empty() {
            return None;
        }
        let at = random.below(self.tried.len());
        let mut tried = match release && !random.one_in(4) {
            true => self.tried.remove(at),
            false => self.tried[at].clone(),
        };
        if many {
            tried.mode = None;
        } else {
            tried.locks = vec![random.of(&tried.locks).clone()];
        }
        Some(tried)
    }

    pub fn owner(&self, random: &mut Random) -> Bytes {
        random.of(&self.owners).clone()
    }

    pub fn lease(&self, random: &mut Random) -> Bytes {
        match random.one_in(12) {
            true => SHORT.into(),
            false => (*random.of(&LEASES)).into(),
        }
    }
}
