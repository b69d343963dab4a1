//! The settings, `rlock.*` in redis.conf and CONFIG SET.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::Mutex;

use redis_module::enum_configuration;

use crate::error;
use crate::lock::{Limits, Rules};

/// `rlock.redisson-compat yes|no` (default yes): publish the message that wakes
/// Redisson's waiters when a lock is left free.
pub static REDISSON_COMPAT: AtomicBool = AtomicBool::new(true);

pub fn redisson_compat() -> bool {
    REDISSON_COMPAT.load(Ordering::Relaxed)
}

/// `rlock.watchdog-lost close|keep` (default close): whether a connection is closed
/// that lost a lock which its watchdog kept.
pub static WATCHDOG_LOST: Mutex<WatchdogLost> = Mutex::new(WatchdogLost::close);

/// `rlock.watchdog-max ms` (default 0, no bound): how long a watchdog keeps a lock
/// without its owner acquiring or renewing it anew.
pub static WATCHDOG_MAX: AtomicI64 = AtomicI64::new(0);

/// `rlock.deadlock-detection yes|no` (default yes): refuse a request that would close a
/// cycle of waiting.
pub static DEADLOCK_DETECTION: AtomicBool = AtomicBool::new(true);

/// `rlock.fencing clock|counter` (default clock): whether every lock gets a fencing
/// counter beside it, `redisson_lock_token:{key}`. One that exists is kept up anyway.
pub static FENCING: Mutex<Fencing> = Mutex::new(Fencing::clock);

/// `rlock.redisson-turn ms` (default 20, 0: none): how long a lock is left free for
/// those who wait for it by subscription, as Redisson does, when it is their turn.
pub static REDISSON_TURN: AtomicI64 = AtomicI64::new(20);

/// `rlock.keep-place ms` (default 15000, 0: not at all): how long the place of a request
/// with ONCE is kept whose connection closes. Libraries wait up to 10 s before they send it
/// again.
pub static KEEP_PLACE: AtomicI64 = AtomicI64::new(15_000);

/// `rlock.grant-after ms` (default 0): for so long after the start nothing is granted to who
/// does not hold it already: the longest lease, for a server that may have lost locks.
pub static GRANT_AFTER: AtomicI64 = AtomicI64::new(0);

/// The greatest `keep-place`, ms.
pub const LONGEST_KEEP_MS: i64 = 600_000;

/// `rlock.stock yes|no` (default yes): look for hashes that could be locks after a load, a
/// promotion, or when the module is loaded.
pub static STOCK: AtomicBool = AtomicBool::new(true);

pub fn takes_stock() -> bool {
    STOCK.load(Ordering::Relaxed)
}

/// `rlock.stock-max n` (default 1000000): remember at most so many of these.
pub static STOCK_MAX: AtomicI64 = AtomicI64::new(1_000_000);

/// The greatest `stock-max`.
pub const MOST_STOCK: i64 = 1_000_000_000;

pub fn stock_max() -> usize {
    usize::try_from(STOCK_MAX.load(Ordering::Relaxed)).unwrap_or(0)
}

/// `rlock.max-waiters n` (default 0, no bound): so many requests may wait,
pub static MAX_WAITERS: AtomicI64 = AtomicI64::new(0);

/// `rlock.max-waiters-per-key n`: for one lock,
pub static MAX_WAITERS_PER_KEY: AtomicI64 = AtomicI64::new(0);

/// `rlock.max-waiters-per-client n`: of one connection.
pub static MAX_WAITERS_PER_CLIENT: AtomicI64 = AtomicI64::new(0);

/// The greatest of these.
pub const MOST_WAITERS: i64 = 1_000_000_000;

/// The greatest `redisson-turn`, ms: nobody else has the lock meanwhile.
pub const LONGEST_TURN_MS: i64 = 10_000;

/// The greatest lease, BLOCK time and `watchdog-max`, ms: what a double counts exactly.
pub const MOST_MS: i64 = (1 << 53) - 1;

enum_configuration! {
    /// The names are what is written in a configuration.
    #[derive(Debug, PartialEq, Eq)]
    #[allow(non_camel_case_types)]
    pub enum WatchdogLost {
        close = 0,
        keep = 1,
    }
}

pub use fencing::Fencing;

/// Apart, for the macro imports what it needs each time.
mod fencing {
    redis_module::enum_configuration! {
        /// As above.
        #[derive(Debug, PartialEq, Eq)]
        #[allow(non_camel_case_types)]
        pub enum Fencing {
            clock = 0,
            counter = 1,
        }
    }
}

/// Whether a lost watchdog hold closes its connection.
pub fn closes_on_loss() -> bool {
    let setting = WATCHDOG_LOST.lock();
    setting.map_or(true, |setting| *setting == WatchdogLost::close)
}

/// A time that is set, ms; `None`: it is set to 0.
fn set_ms(setting: &AtomicI64) -> Option<i64> {
    let ms = setting.load(Ordering::Relaxed);
    (ms > 0).then_some(ms)
}

/// A number that is set; none: it is set to 0.
fn set_number(setting: &AtomicI64) -> usize {
    let number = set_ms(setting).map(usize::try_from);
    number.and_then(Result::ok).unwrap_or(usize::MAX)
}

/// What of the settings concerns the core. `tells`: somebody can hear keyspace events.
/// `hears_all`: what others do to any lock is heard. `age_ms`: since when the module runs.
pub fn rules(tells: bool, hears_all: bool, age_ms: impl FnOnce() -> i64) -> Rules {
    let left = |ms: i64| ms.saturating_sub(age_ms());
    Rules {
        detect_deadlocks: DEADLOCK_DETECTION.load(Ordering::Relaxed),
        watchdog_max: set_ms(&WATCHDOG_MAX),
        counts: FENCING
            .lock()
            .is_ok_and(|setting| *setting == Fencing::counter),
        redisson_turn_us: set_ms(&REDISSON_TURN)
            .filter(|_| redisson_compat())
            .map(|ms| ms.saturating_mul(1000)),
        keep_place: set_ms(&KEEP_PLACE),
        grants_in: set_ms(&GRANT_AFTER).map(left).filter(|ms| *ms > 0),
        most_waiters: Limits {
            in_all: set_number(&MAX_WAITERS),
            of_a_key: set_number(&MAX_WAITERS_PER_KEY),
            of_a_client: set_number(&MAX_WAITERS_PER_CLIENT),
        },
        tells,
        hears_all,
    }
}

/// What a setting can be set to.
enum Allowed {
    Words(&'static [&'static str]),
    /// From 0 to this.
    Ms(i64),
    /// The same, of something else.
    Number(i64),
}

const YES_NO: Allowed = Allowed::Words(&["yes", "no"]);

const SETTINGS: [(&str, Allowed); 13] = [
    ("redisson-compat", YES_NO),
    ("watchdog-lost", Allowed::Words(&["close", "keep"])),
    ("watchdog-max", Allowed::Ms(MOST_MS)),
    ("deadlock-detection", YES_NO),
    ("fencing", Allowed::Words(&["clock", "counter"])),
    ("redisson-turn", Allowed::Ms(LONGEST_TURN_MS)),
    ("keep-place", Allowed::Ms(LONGEST_KEEP_MS)),
    ("grant-after", Allowed::Ms(MOST_MS)),
    ("max-waiters", Allowed::Number(MOST_WAITERS)),
    ("max-waiters-per-key", Allowed::Number(MOST_WAITERS)),
    ("max-waiters-per-client", Allowed::Number(MOST_WAITERS)),
    ("stock", YES_NO),
    ("stock-max", Allowed::Number(MOST_STOCK)),
];

impl Allowed {
    fn takes(&self, value: &[u8]) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word.as_bytes() == value),
            Self::Ms(most) | Self::Number(most) => {
                let number = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                number.is_some_and(|number: i64| (0..=*most).contains(&number))
            }
        }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Words(words) => f.write_str(&words.join(" or ")),
            Self::Ms(most) => write!(f, "a number of ms from 0 to {most}"),
            Self::Number(most) => write!(f, "a number from 0 to {most}"),
        }
    }
}

/// Checks what stands behind `loadmodule …`: settings by name, without the prefix,
/// each with its value. What was wrong, if anything.
pub fn check(args: &[&[u8]]) -> Result<(), String> {
    for pair in args.chunks(2) {
        let shown = |word: Option<&&[u8]>| {
            word.map_or_else(|| "nothing".to_owned(), |word| error::shown(word))
        };
        let (given, value) = (pair.first(), pair.get(1));
        let named = |(name, _): &&(&str, Allowed)| given == Some(&name.as_bytes());
        let Some((name, allowed)) = SETTINGS.iter().find(named) else {
            let known = SETTINGS.map(|(name, allowed)| format!("{name} ({allowed})"));
            let (given, known) = (shown(given), known.join(", "));
            return Err(format!("there is no setting {given}; there are {known}"));
        };
        if !value.is_some_and(|value| allowed.takes(value)) {
            return Err(format!("{name} is {allowed}, got {}", shown(value)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_loadmodule_is_checked() {
        assert_eq!(check(&[]), Ok(()));
        for good in [
            &[&b"redisson-compat"[..], b"no"][..],
            &[b"watchdog-lost", b"keep", b"watchdog-max", b"0"],
            &[b"watchdog-max", b"9007199254740991"],
            &[b"deadlock-detection", b"no"],
            &[b"fencing", b"counter", b"redisson-turn", b"0"],
            &[b"grant-after", b"30000"],
            &[b"stock", b"no", b"stock-max", b"1000000000"],
            &[b"max-waiters", b"1000000000", b"max-waiters-per-key", b"0"],
        ] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        for bad in [
            &[&b"foo"[..]][..],
            &[b"redisson-compat"],
            &[b"redisson-compat", b"maybe"],
            &[b"redisson-compat", b"no", b"x"],
            &[b"watchdog-lost", b"yes"],
            &[b"watchdog-max", b"-1"],
            &[b"watchdog-max", b"9007199254740992"],
            &[b"watchdog-max"],
            &[b"fencing", b"yes"],
            &[b"redisson-turn", b"10001"],
            &[b"keep-place", b"600001"],
            &[b"grant-after", b"-1"],
            &[b"stock", b"0"],
            &[b"stock-max", b"-1"],
            &[b"max-waiters-per-client", b"1000000001"],
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
