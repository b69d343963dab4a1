//! Read/write locks, as the tests speak of them: who takes one, who waits for one,
//! and what is in the keyspace.

use redis::Value;

use crate::support::ask::{list, map, text, Ask};
use crate::support::locks::{token, Waiter, LONG};
use crate::support::{eventually, RawClient, Server};

/// Takes a read lock with a long lease: its token.
#[track_caller]
pub fn read(client: &mut RawClient, key: &str, owner: &str) -> i64 {
    token(client.ask(&format!("RLOCK.ACQUIRE {key} {owner} {LONG} READ")))
}

/// Takes the write lock with a long lease: its token.
#[track_caller]
pub fn write(client: &mut RawClient, key: &str, owner: &str) -> i64 {
    token(client.ask(&format!("RLOCK.ACQUIRE {key} {owner} {LONG} WRITE")))
}

/// Waits for a read lock, for ever.
#[track_caller]
pub fn wait_read(server: &Server, key: &str, owner: &str) -> Waiter {
    Waiter::with(server, &format!("{key} {owner} {LONG} READ BLOCK 0"))
}

/// Waits for the write lock, for ever.
#[track_caller]
pub fn wait_write(server: &Server, key: &str, owner: &str) -> Waiter {
    Waiter::with(server, &format!("{key} {owner} {LONG} WRITE BLOCK 0"))
}

/// The hash of a lock as it is: `field=value`, in order of the fields, between
/// blanks. Empty when there is no such key.
#[track_caller]
pub fn layout(client: &mut RawClient, key: &str) -> String {
    let flat = client.texts(&format!("HGETALL {key}"));
    let mut fields: Vec<String> = flat.chunks(2).map(|pair| pair.join("=")).collect();
    fields.sort();
    fields.join(" ")
}

/// The key that holds a reader's lease for its hold of this number, from 1.
pub fn lease_key(key: &str, owner: &str, number: usize) -> String {
    let name = match key.contains('{') {
        true => key.to_owned(),
        false => format!("{{{key}}}"),
    };
    format!("{name}:{owner}:rwlock_timeout:{number}")
}

/// When the lease keys of a reader end, in order, up to the first that is not
/// there; -1: never.
#[track_caller]
pub fn leases(client: &mut RawClient, key: &str, owner: &str) -> Vec<i64> {
    let mut deadline = |number| client.deadline(&lease_key(key, owner, number));
    let all = (1..).map(&mut deadline);
    all.take_while(|deadline| *deadline != -2).collect()
}

/// The one deadline that all lease keys of a reader have.
#[track_caller]
pub fn lease(client: &mut RawClient, key: &str, owner: &str) -> i64 {
    let found = leases(client, key, owner);
    let first = *found.first().expect("a lease key");
    assert!(found.iter().all(|one| *one == first), "{found:?}");
    first
}

/// What RLOCK.INFO calls the lock's mode.
#[track_caller]
pub fn mode(client: &mut RawClient, key: &str) -> String {
    let info = map(client.ask(&format!("RLOCK.INFO {key}")));
    text(info["mode"].clone())
}

#[track_caller]
pub fn waiters(client: &mut RawClient, key: &str) -> i64 {
    match map(client.ask(&format!("RLOCK.INFO {key}")))["waiters"] {
        Value::Int(count) => count,
        ref other => panic!("not a number: {other:?}"),
    }
}

/// Who holds the lock as RLOCK.INFO tells it, each as `owner mode holds`, sorted.
#[track_caller]
pub fn holders(client: &mut RawClient, key: &str) -> Vec<String> {
    let info = map(client.ask(&format!("RLOCK.INFO {key}")));
    let mut all: Vec<String> = list(info["holders"].clone())
        .into_iter()
        .map(|holder| {
            let holder = map(holder);
            let Value::Int(holds) = holder["holds"] else {
                panic!("not a number: {holder:?}");
            };
            let word = |name: &str| text(holder[name].clone());
            format!("{} {} {holds}", word("owner"), word("mode"))
        })
        .collect();
    all.sort();
    all
}

/// The token that RLOCK.INFO tells for an owner in a mode.
#[track_caller]
pub fn known_token(client: &mut RawClient, key: &str, owner: &str, mode: &str) -> Value {
    let info = map(client.ask(&format!("RLOCK.INFO {key}")));
    let found = list(info["holders"].clone())
        .into_iter()
        .map(map)
        .find(|holder| {
            let is = |name: &str, word: &str| text(holder[name].clone()) == word;
            is("owner", owner) && is("mode", mode)
        });
    found.expect("a holder")["token"].clone()
}

/// Waits until the lock is held by these, `owner mode holds`, and nobody else.
#[track_caller]
pub fn held_by(client: &mut RawClient, key: &str, expected: &[&str]) {
    eventually(&format!("{key} is held by {expected:?}"), || {
        holders(client, key) == expected
    });
}

/// Nothing is left of any lock, and nobody waits for this one.
#[track_caller]
pub fn nothing_left(client: &mut RawClient, key: &str) {
    assert_eq!(mode(client, key), "free");
    assert_eq!(waiters(client, key), 0);
    assert_eq!(client.int("DBSIZE"), 0, "{:?}", client.texts("KEYS *"));
}

/// All keys and when they end: hashes by their fields, strings by their values.
#[track_caller]
pub fn everything(client: &mut RawClient) -> Vec<(String, String, i64)> {
    let mut keys = client.texts("KEYS *");
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let content = match client.text(&format!("TYPE {key}")).as_str() {
                "hash" => layout(client, &key),
                "string" => client.text(&format!("GET {key}")),
                gone => gone.to_owned(),
            };
            let deadline = client.deadline(&key);
            (key, content, deadline)
        })
        .collect()
}
