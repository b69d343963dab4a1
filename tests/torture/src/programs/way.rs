//! Holds that give way: what they are again has another name in the history, and the same one for the driver.

use serde_json::Value;

/// As its driver knows it.
pub fn of_driver(hold: &str) -> &str {
    hold.split('~').next().unwrap_or(hold)
}

/// What it is when it has given way.
pub fn next(hold: &str) -> String {
    let (name, count) = hold.split_once('~').unwrap_or((hold, "0"));
    format!("{name}~{}", count.parse::<u32>().unwrap_or_default() + 1)
}

/// Whether what was asked for with these words can give way, in the hands of whoever has it.
pub fn can(words: &Value) -> bool {
    let others = ["keys", "mode", "permits"];
    others.iter().all(|word| words[word].is_null())
}
