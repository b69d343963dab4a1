//! The locks that all contend for.

use fastrand::Rng;
use serde_json::{json, Value};

/// Those that are held for long, for more to happen to their holders.
pub const QUIET: [&str; 8] = ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"];
/// Plain ones; read/write ones; permits; and such of which holders are thrown out.
pub const PLAIN: [&str; 4] = ["x0", "x1", "x2", "x3"];
pub const SHARED: [&str; 2] = ["r0", "r1"];
pub const PERMITS: &str = "p0";
pub const LIMIT: u64 = 3;
pub const FORCED: [&str; 1] = ["f0"];

/// Those that processes keep between their uses too.
pub const STICKY: [&str; 4] = ["x0", "x1", "x2", "f0"];

/// The first of the quiet ones are of that kind too.
pub const THROWN_OUT: usize = 3;

/// One of those of which holders are thrown out.
pub fn forced(rng: &mut Rng) -> &'static str {
    let all = FORCED.iter().chain(&QUIET[..THROWN_OUT]);
    let all: Vec<&'static str> = all.copied().collect();
    all[rng.usize(0..all.len())]
}

pub fn all() -> impl Iterator<Item = &'static str> {
    let some = PLAIN.into_iter().chain(SHARED).chain(FORCED);
    some.chain([PERMITS]).chain(QUIET)
}

/// One of them, or several, as a driver is asked for it.
pub fn draw(rng: &mut Rng) -> Value {
    match rng.u32(0..20) {
        0..9 => json!({"key": rng.choice(PLAIN)}),
        9 | 10 => {
            let first = rng.usize(0..4);
            let second = (first + rng.usize(1..4)) % 4;
            json!({"keys": [PLAIN[first], PLAIN[second]]})
        }
        11..15 => {
            let mode = if rng.u32(0..3) == 0 { "write" } else { "read" };
            json!({"key": rng.choice(SHARED), "mode": mode})
        }
        15..18 => json!({"key": PERMITS, "limit": LIMIT, "permits": rng.u64(1..3)}),
        _ => json!({"key": rng.choice(FORCED)}),
    }
}

/// Those of the plain ones that have a counter of tokens from the beginning, where Redisson takes
/// part: its fenced locks count by it alone.
pub const FENCED: [&str; 2] = ["x0", "x1"];

/// One of them, as Redisson is asked for it.
pub fn for_redisson(rng: &mut Rng) -> Value {
    match rng.u32(0..10) {
        0..2 => json!({"key": rng.choice(FENCED), "verb": "fenced"}),
        2..6 => json!({"key": rng.choice(PLAIN), "verb": "lock"}),
        6 => json!({"key": rng.choice(FORCED), "verb": "lock"}),
        7 => json!({"key": rng.choice(SHARED), "mode": "write", "verb": "write"}),
        _ => json!({"key": rng.choice(SHARED), "mode": "read", "verb": "read"}),
    }
}
