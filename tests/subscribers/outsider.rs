//! Redisson's waiters, as far as the module sees them; and the queue beside them.

use redis::Value;

use crate::support::{list, text, Ask, RawClient, Server, Waiter};

pub const CHANNEL: &str = "redisson_lock__channel:{job}";
pub const LONG_TURN: &str = "CONFIG SET rlock.redisson-yield 10000";

/// Waits as Redisson does.
pub struct Outsider {
    subscriber: RawClient,
    client: RawClient,
}

impl Outsider {
    #[track_caller]
    pub fn on(server: &Server, subscribe: &str, channel: &str) -> Self {
        let mut subscriber = server.raw();
        subscriber.ask(&[subscribe, channel]);
        if subscribe != "PSUBSCRIBE" {
            server.sees_subscribers();
        }
        let client = server.raw();
        Self { subscriber, client }
    }

    #[track_caller]
    pub fn new(server: &Server) -> Self {
        Self::on(server, "SUBSCRIBE", CHANNEL)
    }

    /// One to whom `job` is left, for so many ms: it was released a moment ago.
    #[track_caller]
    pub fn in_its_turn(ms: i64) -> (Server, RawClient, Self) {
        let server = Server::start();
        let mut client = server.raw();
        client.ok(&format!("CONFIG SET rlock.redisson-yield {ms}"));
        client.int("RLOCK.ACQUIRE job alice 60000");
        let outsider = Self::new(&server);
        client.int("RLOCK.RELEASE job alice");
        (server, client, outsider)
    }

    /// The message that wakes it.
    #[track_caller]
    pub fn woken(&mut self) -> String {
        list(self.subscriber.read())
            .pop()
            .map(text)
            .unwrap_or_default()
    }

    /// Tries as RedissonLock does; whether it has the lock.
    #[track_caller]
    pub fn takes(&mut self) -> bool {
        let script = "if redis.call('exists', KEYS[1]) == 0 then \
                      redis.call('hincrby', KEYS[1], ARGV[1], 1) \
                      redis.call('pexpire', KEYS[1], 60000) return 1 end return 0";
        self.client.ask(&["EVAL", script, "1", "job", "uuid:1"]) == Value::Int(1)
    }

    #[track_caller]
    pub fn leaves(&mut self) {
        let script = "redis.call('del', KEYS[1]) redis.call('publish', ARGV[1], 0)";
        self.client.ask(&["EVAL", script, "1", "job", CHANNEL]);
    }

    pub fn goes(mut self) {
        self.subscriber.ask("UNSUBSCRIBE");
    }
}

/// So many wait in the queue, in this order.
#[track_caller]
pub fn crowd(server: &Server, count: usize) -> Vec<Waiter> {
    let mut control = server.raw();
    let before = control.waiters("job");
    let all = before + count as i64;
    let crowd = (before..all)
        .map(|number| Waiter::with(server, &format!("job w{number} 60000 BLOCK 0")))
        .collect();
    assert_eq!(control.waiters("job"), all);
    crowd
}
