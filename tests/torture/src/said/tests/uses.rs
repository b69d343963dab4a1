//! Uses of sticky locks.

use rlock_torture::saw::Record;
use serde_json::json;

use super::{ask, asked, closed, finds, granted, released};

/// Of a lock that was acquired before, with its token.
fn used(hold: &str, at: u64, token: i64) -> Record {
    let words = json!({"key": "x", "lease": 2000, "sticky": true, "token": true});
    let out = json!({"ok": {"token": token}});
    asked(1, "acquire", hold, (at, at + 1), (words, out))
}

#[test]
fn one_that_began_though_the_lock_was_anothers_has_an_old_token_and_ends_as_lost() {
    let between = || {
        vec![
            closed(1, 100),
            granted(2, "b", 120, 2),
            released(2, "b", 130),
            used("a", 200, 1),
        ]
    };
    let lost = ask(1, "release", "a", (210, 211), json!({"error": "lost"}));
    let mut all = between();
    all.push(lost);
    finds(all, &[]);
    let mut all = between();
    all.push(released(1, "a", 210));
    finds(all, &["tokens"]);
}
