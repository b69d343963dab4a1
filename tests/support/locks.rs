//! Locks, as the tests speak of them: requests as lines of text, waiters, and what
//! is known of a key.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::Value;

pub use crate::support::{code, int, pong, token, Waiter, LONG};
use crate::support::{eventually, Ask, RawClient, Server};

/// Requests as lines of text, split at blanks.
pub trait Say {
    fn say(&mut self, line: &str) -> Value;
    fn tell(&mut self, line: &str);
    fn tell_all<L: AsRef<str>>(&mut self, lines: &[L]);
    fn say_all<L: AsRef<str>>(&mut self, lines: &[L]) -> Vec<Value>;
}

impl Say for RawClient {
    /// Sends a request and gives its reply.
    #[track_caller]
    fn say(&mut self, line: &str) -> Value {
        self.call(&words(line))
    }

    /// Sends a request.
    #[track_caller]
    fn tell(&mut self, line: &str) {
        self.send(&words(line));
    }

    /// Sends requests in one write.
    #[track_caller]
    fn tell_all<L: AsRef<str>>(&mut self, lines: &[L]) {
        let requests: Vec<_> = lines.iter().map(|line| words(line.as_ref())).collect();
        let requests: Vec<&[&str]> = requests.iter().map(Vec::as_slice).collect();
        self.send_many(&requests);
    }

    /// Sends requests in one write and gives their replies.
    #[track_caller]
    fn say_all<L: AsRef<str>>(&mut self, lines: &[L]) -> Vec<Value> {
        self.tell_all(lines);
        self.read_many(lines.len())
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

impl Waiter {
    #[track_caller]
    pub fn in_step(&mut self) {
        self.client.in_step();
    }
}

/// Who holds a lock, and how often: its hash as it is.
#[track_caller]
pub fn holds(client: &mut RawClient, key: &str) -> Vec<(String, i64)> {
    let reply = client.call(&["HGETALL", key]);
    let mut holds: Vec<_> = redis::from_redis_value::<HashMap<String, i64>>(reply)
        .expect("a hash of counts")
        .into_iter()
        .collect();
    holds.sort();
    holds
}

/// The one owner that holds a lock, once.
#[track_caller]
pub fn holder(client: &mut RawClient, key: &str) -> Option<String> {
    match holds(client, key).as_slice() {
        [] => None,
        [(owner, 1)] => Some(owner.clone()),
        more => panic!("{key} is held by {more:?}"),
    }
}

/// What RLOCK.INFO tells.
#[derive(Debug, PartialEq)]
pub struct Info {
    pub mode: String,
    /// Of each holder: the owner, its holds, the token.
    pub holders: Vec<(String, i64, Option<i64>)>,
    pub remaining_ms: Option<i64>,
    pub waiters: i64,
    pub oldest_wait_ms: Option<i64>,
}

#[track_caller]
pub fn info(client: &mut RawClient, key: &str) -> Info {
    let map = |value| redis::from_redis_value::<HashMap<String, Value>>(value).expect("a map");
    let number = |value: &Value| match value {
        Value::Nil => None,
        other => Some(int(other.clone())),
    };
    let text = |value: &Value| redis::from_redis_value::<String>(value.clone()).expect("a text");
    let fields = map(client.call(&["RLOCK.INFO", key]));
    let holders: Vec<Value> = redis::from_redis_value(fields["holders"].clone()).expect("a list");
    let holders: Vec<_> = holders.into_iter().map(map).collect();
    Info {
        mode: text(&fields["mode"]),
        remaining_ms: holders
            .first()
            .and_then(|holder| number(&holder["remaining-ms"])),
        holders: holders
            .iter()
            .map(|holder| {
                let holds = int(holder["holds"].clone());
                (text(&holder["owner"]), holds, number(&holder["token"]))
            })
            .collect(),
        waiters: int(fields["waiters"].clone()),
        oldest_wait_ms: number(&fields["oldest-wait-ms"]),
    }
}

/// Waits until so many requests stand in the queue.
#[track_caller]
pub fn has_waiters(client: &mut RawClient, key: &str, count: i64) {
    eventually(&format!("{count} wait for {key}"), || {
        info(client, key).waiters == count
    });
}

/// A free lock without a queue.
#[track_caller]
pub fn is_free(client: &mut RawClient, key: &str) {
    let found = info(client, key);
    assert_eq!((found.mode.as_str(), found.waiters), ("free", 0));
    assert_eq!(client.call(&["EXISTS", key]), Value::Int(0));
}

/// The moment at which a lock's lease ends, ms since 1970.
///
/// The key lives through that millisecond, as rlock sees it; but Redis 8.0's own
/// expiry cycle, when it comes first, takes it in that very one. So "not before its
/// deadline" is what tests may ask of all servers.
#[track_caller]
pub fn deadline(client: &mut RawClient, key: &str) -> i64 {
    let at = int(client.call(&["PEXPIRETIME", key]));
    assert!(at > 0, "{key} has no lease: {at}");
    at
}

/// Takes a lock whose lease ends soon: when. In one write, so that it has not ended
/// by then.
#[track_caller]
pub fn take_until(client: &mut RawClient, key: &str, lease: i64) -> i64 {
    let take = format!("RLOCK.ACQUIRE {key} a {lease}");
    let mut replies = client.say_all(&[take, format!("PEXPIRETIME {key}")]);
    let ends = int(replies.remove(1));
    token(replies.remove(0));
    ends
}

/// The servers' clock, which is this machine's, ms since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_millis() as i64
}

/// Waits until the clock shows more than this.
#[track_caller]
pub fn pass(at: i64) {
    eventually("time passes", || now_ms() > at);
}
