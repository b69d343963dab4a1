//! What the server tells of its locks, taken apart; connections that hold a lock
//! with WATCHDOG; and requests of any command that wait.

use std::collections::BTreeMap;

use redis::Value;

use crate::support::ask::{list, map, text};
use crate::support::locks::{int, pong, token, Say, Waiter, LONG};
use crate::support::{eventually, poll, RawClient, Server, BOUND};
pub use crate::support::{Bound, Hold};

#[track_caller]
pub fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Nil => None,
        other => Some(int(other.clone())),
    }
}

#[track_caller]
pub fn look(client: &mut RawClient, key: &str) -> BTreeMap<String, Value> {
    map(client.call(&["RLOCK.INFO", key]))
}

#[track_caller]
pub fn mode(client: &mut RawClient, key: &str) -> String {
    text(look(client, key)["mode"].clone())
}

#[track_caller]
pub fn hold_list(client: &mut RawClient, key: &str) -> Vec<Hold> {
    let holders = list(look(client, key)["holders"].clone());
    holders
        .into_iter()
        .map(map)
        .map(|fields| Hold {
            owner: text(fields["owner"].clone()),
            mode: text(fields["mode"].clone()),
            holds: int(fields["holds"].clone()),
            remaining_ms: number(&fields["remaining-ms"]),
            held_ms: number(&fields["held-ms"]),
            token: number(&fields["token"]),
            watchdog: number(&fields["watchdog"]),
        })
        .collect()
}

/// Who holds a lock, in what mode and how often: by owner, and of one owner in the
/// order of RLOCK.INFO.
#[track_caller]
pub fn who(client: &mut RawClient, key: &str) -> Vec<(String, String, i64)> {
    let mut holds: Vec<_> = hold_list(client, key)
        .into_iter()
        .map(|hold| (hold.owner, hold.mode, hold.holds))
        .collect();
    holds.sort_by(|x, y| x.0.cmp(&y.0));
    holds
}

/// The same as one would write it: `a read 2, b read 1`.
#[track_caller]
pub fn held_by(client: &mut RawClient, key: &str) -> String {
    let holds = who(client, key).into_iter();
    let holds: Vec<_> = holds
        .map(|(owner, mode, holds)| format!("{owner} {mode} {holds}"))
        .collect();
    holds.join(", ")
}

/// The only entry of a lock that is held.
#[track_caller]
pub fn only(client: &mut RawClient, key: &str) -> Hold {
    // A look right after a stall of the machine can come before the server has
    // renewed what it keeps.
    let held = poll(BOUND, || {
        Some(hold_list(client, key)).filter(|holds| !holds.is_empty())
    });
    let mut holds = held.unwrap_or_default();
    assert_eq!(holds.len(), 1, "{key}: {holds:?}");
    holds.remove(0)
}

/// The connection that the only entry is bound to.
#[track_caller]
pub fn watchdog(client: &mut RawClient, key: &str) -> Option<i64> {
    only(client, key).watchdog
}

/// The numbers of the section `rlock` of INFO.
#[track_caller]
pub fn counters(client: &mut RawClient) -> BTreeMap<String, i64> {
    let section = text(client.say("INFO rlock"));
    let fields = section.lines().filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
        .collect()
}

#[track_caller]
pub fn counter(client: &mut RawClient, name: &str) -> i64 {
    match counters(client).get(name) {
        Some(value) => *value,
        None => panic!("INFO rlock tells no {name}"),
    }
}

/// A connection whose request, of whatever command, stands in a queue.
#[track_caller]
pub fn waits(server: &Server, line: &str) -> Waiter {
    waits_on(server.raw(), line)
}

/// The same on a connection that is there already.
#[track_caller]
pub fn waits_on(mut client: RawClient, line: &str) -> Waiter {
    // As for `Waiter`: the id comes when the request was run.
    client.tell_all(&["CLIENT ID", line]);
    let id = int(client.read());
    Waiter { client, id }
}

impl Bound {
    #[track_caller]
    pub fn is_open(&mut self) {
        self.client.in_step();
    }

    pub fn is_closed(&mut self) -> bool {
        self.client.is_closed()
    }
}

/// Panics if the server closed the connection.
#[track_caller]
pub fn open(client: &mut RawClient) {
    assert_eq!(client.say("PING"), pong());
}

/// Waits until nobody holds the key, and it does not exist.
#[track_caller]
pub fn goes_free(client: &mut RawClient, key: &str) {
    eventually(&format!("{key} is free"), || {
        mode(client, key) == "free" && client.call(&["EXISTS", key]) == Value::Int(0)
    });
}

/// Waits until the lock is held like this, written as `held_by` does.
#[track_caller]
pub fn goes_to(client: &mut RawClient, key: &str, held: &str) {
    eventually(&format!("{key} is held by {held}"), || {
        held_by(client, key) == held
    });
}

#[track_caller]
pub fn set(client: &mut RawClient, parameter: &str) {
    let reply = client.say(&format!("CONFIG SET {parameter}"));
    assert_eq!(reply, Value::Okay, "{parameter}");
}
