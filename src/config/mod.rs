//! The settings, `rlock.*` in redis.conf and CONFIG SET.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::Mutex;

use redis_module::configuration::{
    get_bool_default_config_value, get_enum_default_config_value, get_i64_default_config_value,
    register_bool_configuration, register_enum_configuration, register_i64_configuration,
    ConfigurationContext, ConfigurationFlags, ConfigurationValue,
};
use redis_module::{enum_configuration, Context, RedisError, RedisString};

use crate::lock::{Limits, Rules};

mod arguments;

pub use arguments::check;

/// `rlock.redisson-compat yes|no` (default yes): publish the message that wakes
/// Redisson's waiters when a lock is left free.
static REDISSON_COMPAT: AtomicBool = AtomicBool::new(true);

pub fn redisson_compat() -> bool {
    REDISSON_COMPAT.load(Ordering::Relaxed)
}

/// `rlock.watchdog-lost close|keep` (default close): whether a connection is closed
/// that lost a lock which its watchdog kept.
static WATCHDOG_LOST: Mutex<WatchdogLost> = Mutex::new(WatchdogLost::close);

/// `rlock.watchdog-max ms` (default 0, no bound): how long a watchdog keeps a lock
/// without its owner acquiring or renewing it anew.
static WATCHDOG_MAX: Number = Number::ms("watchdog-max", 0, LEAST_MS, MOST_MS);

/// `rlock.deadlock-detection yes|no` (default yes): refuse a request that would close a
/// cycle of waiting.
static DEADLOCK_DETECTION: AtomicBool = AtomicBool::new(true);

/// `rlock.fencing clock|counter` (default clock): whether every lock gets a fencing
/// counter, the key `redisson_lock_token:{key}`. One that exists is kept up anyway.
static FENCING: Mutex<Fencing> = Mutex::new(Fencing::clock);

/// `rlock.redisson-yield ms` (default 20, 0: none): how long a lock is left free for
/// those who wait for it by subscription, as Redisson does: the yield window.
static REDISSON_YIELD: Number = Number::ms("redisson-yield", 20, 1, LONGEST_YIELD_MS);

/// `rlock.keep-place ms` (default 15000, 0: not at all): how long the place of a request
/// with ONCE is kept whose connection closes. Libraries wait up to 10 s before they
/// retry it.
static KEEP_PLACE: Number = Number::ms("keep-place", 15_000, LEAST_MS, LONGEST_KEEP_MS);

/// `rlock.grant-after ms` (default 0): for so long after the start nothing is granted to who
/// does not hold it already: the longest lease, for a server that may have lost locks.
static GRANT_AFTER: Number = Number::ms("grant-after", 0, LEAST_MS, MOST_MS);

/// The greatest `keep-place`, ms.
const LONGEST_KEEP_MS: i64 = 600_000;

/// `rlock.recovery-scan yes|no` (default yes): look for hashes that could be locks after a
/// load, a promotion, or when the module is loaded.
static RECOVERY_SCAN: AtomicBool = AtomicBool::new(true);

pub fn scans_for_recovery() -> bool {
    RECOVERY_SCAN.load(Ordering::Relaxed)
}

/// `rlock.recovery-scan-max n` (default 1000000): remember at most so many of these.
static RECOVERY_SCAN_MAX: Number =
    Number::count("recovery-scan-max", 1_000_000, RECOVERY_SCAN_MOST);

/// The greatest `recovery-scan-max`.
const RECOVERY_SCAN_MOST: i64 = 1_000_000_000;

pub fn recovery_scan_max() -> usize {
    usize::try_from(RECOVERY_SCAN_MAX.get()).unwrap_or(0)
}

/// `rlock.max-waiters n` (default 0, no bound): so many requests may wait,
static MAX_WAITERS: Number = Number::count("max-waiters", 0, MOST_WAITERS);

/// `rlock.max-waiters-per-key n`: for one lock,
static MAX_WAITERS_PER_KEY: Number = Number::count("max-waiters-per-key", 0, MOST_WAITERS);

/// `rlock.max-waiters-per-client n`: of one connection.
static MAX_WAITERS_PER_CLIENT: Number = Number::count("max-waiters-per-client", 0, MOST_WAITERS);

/// The greatest of these.
const MOST_WAITERS: i64 = 1_000_000_000;

/// The greatest `redisson-yield`, ms: nobody else has the lock meanwhile.
const LONGEST_YIELD_MS: i64 = 10_000;

/// The least time that is not 0: who sets less has counted in seconds, not ms.
const LEAST_MS: i64 = 1000;

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

/// A setting that is a number.
struct Number {
    name: &'static str,
    default: i64,
    allowed: Allowed,
    value: AtomicI64,
}

impl Number {
    /// A time: 0, or from `least` to `most` ms.
    const fn ms(name: &'static str, default: i64, least: i64, most: i64) -> Self {
        Self::new(name, default, Allowed::Ms { least, most })
    }

    const fn count(name: &'static str, default: i64, most: i64) -> Self {
        Self::new(name, default, Allowed::Number(most))
    }

    const fn new(name: &'static str, default: i64, allowed: Allowed) -> Self {
        let value = AtomicI64::new(default);
        Self {
            name,
            default,
            allowed,
            value,
        }
    }

    fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The number; `None`: it is set to 0.
    fn set(&self) -> Option<i64> {
        Some(self.get()).filter(|number| *number > 0)
    }

    /// The number; none: it is set to 0.
    fn bound(&self) -> usize {
        let number = self.set().map(usize::try_from);
        number.and_then(Result::ok).unwrap_or(usize::MAX)
    }
}

impl ConfigurationValue<i64> for Number {
    fn get(&self, _: &ConfigurationContext) -> i64 {
        self.get()
    }

    fn set(&self, _: &ConfigurationContext, number: i64) -> Result<(), RedisError> {
        if !self.allowed.has(number) {
            let Self { name, allowed, .. } = self;
            return Err(RedisError::String(format!(
                "rlock.{name} is {allowed}, got {number}"
            )));
        }
        self.value.store(number, Ordering::Relaxed);
        Ok(())
    }
}

/// What of the settings concerns the core. `emits_events`: somebody can get keyspace events.
/// `observes_all`: what others do to any lock is observed. `age_ms`: since when the module runs.
pub fn rules(emits_events: bool, observes_all: bool, age_ms: impl FnOnce() -> i64) -> Rules {
    let left = |ms: i64| ms.saturating_sub(age_ms());
    Rules {
        detect_deadlocks: DEADLOCK_DETECTION.load(Ordering::Relaxed),
        watchdog_max: WATCHDOG_MAX.set(),
        counts: FENCING
            .lock()
            .is_ok_and(|setting| *setting == Fencing::counter),
        redisson_yield_us: REDISSON_YIELD
            .set()
            .filter(|_| redisson_compat())
            .map(|ms| ms.saturating_mul(1000)),
        keep_place: KEEP_PLACE.set(),
        grants_in: GRANT_AFTER.set().map(left).filter(|ms| *ms > 0),
        most_waiters: Limits {
            in_all: MAX_WAITERS.bound(),
            of_a_key: MAX_WAITERS_PER_KEY.bound(),
            of_a_client: MAX_WAITERS_PER_CLIENT.bound(),
        },
        emits_events,
        observes_all,
    }
}

/// The same where those that concern a free lock are as they are by default, nobody gets events
/// and nothing is observed. `None`: they are not.
pub fn plain_rules() -> Option<Rules> {
    if GRANT_AFTER.get() > 0 {
        return None;
    }
    let rules = rules(false, false, || 0);
    (!rules.counts).then_some(rules)
}

/// What a setting can be set to.
#[derive(Clone, Copy)]
enum Allowed {
    Words(&'static [&'static str]),
    /// 0, or from `least` to `most`.
    Ms {
        least: i64,
        most: i64,
    },
    /// From 0 to this.
    Number(i64),
}

const YES_NO: Allowed = Allowed::Words(&["yes", "no"]);

static NUMBERS: [&Number; 8] = [
    &WATCHDOG_MAX,
    &REDISSON_YIELD,
    &KEEP_PLACE,
    &GRANT_AFTER,
    &MAX_WAITERS,
    &MAX_WAITERS_PER_KEY,
    &MAX_WAITERS_PER_CLIENT,
    &RECOVERY_SCAN_MAX,
];

static SWITCHES: [(&str, &AtomicBool); 3] = [
    ("redisson-compat", &REDISSON_COMPAT),
    ("deadlock-detection", &DEADLOCK_DETECTION),
    ("recovery-scan", &RECOVERY_SCAN),
];

const LOST: &str = "watchdog-lost";
const FENCED: &str = "fencing";

/// All settings by their names.
fn all() -> impl Iterator<Item = (&'static str, Allowed)> {
    let numbers = NUMBERS.iter().map(|number| (number.name, number.allowed));
    let switches = SWITCHES.iter().map(|(name, _)| (*name, YES_NO));
    let words = [
        (LOST, Allowed::Words(&["close", "keep"])),
        (FENCED, Allowed::Words(&["clock", "counter"])),
    ];
    numbers.chain(switches).chain(words)
}

impl Allowed {
    fn takes(&self, value: &[u8]) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word.as_bytes() == value),
            Self::Ms { .. } | Self::Number(_) => {
                let number = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                number.is_some_and(|number| self.has(number))
            }
        }
    }

    fn has(&self, number: i64) -> bool {
        match self {
            Self::Words(_) => false,
            Self::Ms { least, most } => number == 0 || (*least..=*most).contains(&number),
            Self::Number(most) => (0..=*most).contains(&number),
        }
    }

    fn most(&self) -> i64 {
        match self {
            Self::Words(_) => 0,
            Self::Ms { most, .. } | Self::Number(most) => *most,
        }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Words(words) => f.write_str(&words.join(" or ")),
            Self::Ms { least: 1, most } => write!(f, "a number of ms from 0 to {most}"),
            Self::Ms { least, most } => write!(f, "0 or a number of ms from {least} to {most}"),
            Self::Number(most) => write!(f, "a number from 0 to {most}"),
        }
    }
}

/// Registers the settings with the server. What stood behind `loadmodule …`, and was
/// [checked](check), is what they are where neither redis.conf nor CONFIG SET says otherwise.
pub fn register(context: &Context, args: &[RedisString]) {
    let plain = || ConfigurationFlags::DEFAULT;
    for number in NUMBERS {
        let default = get_i64_default_config_value(args, number.name, number.default);
        let default = default.unwrap_or(number.default);
        let most = number.allowed.most();
        register_i64_configuration(
            context,
            number.name,
            number,
            default,
            0,
            most,
            plain(),
            None,
        );
    }
    for (name, switch) in SWITCHES {
        let default = get_bool_default_config_value(args, name, true).unwrap_or(true);
        register_bool_configuration(context, name, switch, default, plain(), None);
    }
    let lost = get_enum_default_config_value(args, LOST, WatchdogLost::close);
    let lost = lost.unwrap_or(WatchdogLost::close);
    register_enum_configuration(context, LOST, &WATCHDOG_LOST, lost, plain(), None);
    let fenced = get_enum_default_config_value(args, FENCED, Fencing::clock);
    let fenced = fenced.unwrap_or(Fencing::clock);
    register_enum_configuration(context, FENCED, &FENCING, fenced, plain(), None);
}
