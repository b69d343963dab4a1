//! Uses of sticky locks: the history has each as a hold, with the same requests.

use serde_json::{json, Value};

/// How long a use waits, ms.
const WAIT: u64 = 1_500;

/// A use is known by its name.
pub fn name(hold: &str) -> String {
    format!("u{hold}")
}

pub fn is_use(hold: &str) -> bool {
    hold.starts_with('u')
}

/// What a driver is asked for.
pub fn request<'a>(hold: &str, what: &'a str) -> &'a str {
    match (is_use(hold), what) {
        (true, "acquire") => "use",
        (true, "state") => "use_state",
        (true, "release") => "use_end",
        _ => what,
    }
}

/// What is said of the sticky lock for that key. Its lease is not longer than its driver has patience for.
pub fn words(key: &str, patience: Option<u64>) -> Value {
    let lease = patience.map_or(3_000, |most| most * 8 / 10);
    json!({"key": key, "wait": WAIT, "lease": lease})
}
