//! Those who wait by subscription, as Redisson does, get their turn: the lock is left
//! free for them at times, however many wait in the queue.

use redis::Value;

use crate::support::ask::{list, Ask};
use crate::support::look::{counter, mode, set};
use crate::support::setup::cluster;
use crate::support::{eventually, eventually_within, RawClient, Server, BOUND};

pub const CHANNEL: &str = "redisson_lock__channel:{job}";
pub const LONG_TURN: &str = "rlock.redisson-turn 10000";

/// Waits as Redisson does.
pub struct Outsider {
    subscriber: RawClient,
    client: RawClient,
}

impl Outsider {
    #[track_caller]
    pub fn on(server: &Server, subscribe: &str, channel: &str) -> Self {
        let mut subscriber = server.raw();
        subscriber.call(&[subscribe, channel]);
        let client = server.raw();
        Self { subscriber, client }
    }

    #[track_caller]
    pub fn new(server: &Server) -> Self {
        Self::on(server, "SUBSCRIBE", CHANNEL)
    }

    /// The message that wakes it.
    #[track_caller]
    pub fn woken(&mut self) -> String {
        let parts: Vec<String> = match redis::from_redis_value(self.subscriber.read()) {
            Ok(parts) => parts,
            Err(error) => panic!("{error}"),
        };
        parts.last().cloned().unwrap_or_default()
    }

    /// Tries as RedissonLock does; whether it has the lock.
    #[track_caller]
    pub fn takes(&mut self) -> bool {
        let script = "if redis.call('exists', KEYS[1]) == 0 then \
                      redis.call('hincrby', KEYS[1], ARGV[1], 1) \
                      redis.call('pexpire', KEYS[1], 60000) return 1 end return 0";
        self.client.call(&["EVAL", script, "1", "job", "uuid:1"]) == Value::Int(1)
    }

    #[track_caller]
    pub fn leaves(&mut self) {
        let script = "redis.call('del', KEYS[1]) redis.call('publish', ARGV[1], 0)";
        self.client.call(&["EVAL", script, "1", "job", CHANNEL]);
    }

    fn goes(mut self) {
        self.subscriber.call(&["UNSUBSCRIBE"]);
    }
}

/// So many wait in the queue, in this order.
pub fn crowd(server: &Server, count: usize) -> Vec<RawClient> {
    let mut control = server.raw();
    let before = list(control.ask("RLOCK.WAITERS job")).len();
    (0..count)
        .map(|number| {
            let mut waiter = server.raw();
            let owner = format!("w{}", before + number);
            waiter.send(&["RLOCK.ACQUIRE", "job", &owner, "60000", "BLOCK", "0"]);
            eventually("it waits", || {
                list(control.ask("RLOCK.WAITERS job")).len() == before + number + 1
            });
            waiter
        })
        .collect()
}

/// Each of them that is granted releases at once; how many were before the lock was
/// left free.
fn granted_before_a_turn(client: &mut RawClient, crowd: &mut [RawClient]) -> usize {
    for (number, waiter) in crowd.iter_mut().enumerate() {
        if mode(client, "job") == "reserved" {
            return number;
        }
        assert!(matches!(waiter.read(), Value::Int(_)));
        client.int(&format!("RLOCK.RELEASE job w{number}"));
    }
    crowd.len()
}

#[test]
fn one_comes_after_eight_grants_at_most_and_the_queue_goes_on_after_it() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut crowd = crowd(&server, 14);
    let mut outsider = Outsider::new(&server);
    assert!(!outsider.takes());
    client.int("RLOCK.RELEASE job alice");
    let before = granted_before_a_turn(&mut client, &mut crowd);
    assert!((1..=8).contains(&before), "{before}");
    assert_eq!(outsider.woken(), "0");
    // Nobody else has it meanwhile.
    assert!(client.refused("RLOCK.ACQUIRE job bob 60000"));
    assert!(client.refused("RLOCK.MACQUIRE 2 job other bob 60000"));
    assert!(crowd[before]
        .read_within(std::time::Duration::ZERO)
        .is_none());
    assert!(outsider.takes());
    outsider.leaves();
    for (number, waiter) in crowd.iter_mut().enumerate().skip(before) {
        // It listens still, and so it may have another turn.
        eventually("the next is granted", || {
            if mode(&mut client, "job") == "reserved" && outsider.takes() {
                outsider.leaves();
            }
            mode(&mut client, "job") == "exclusive"
        });
        assert!(matches!(waiter.read(), Value::Int(_)));
        client.int(&format!("RLOCK.RELEASE job w{number}"));
    }
    assert!(counter(&mut client, "rlock_redisson_turns_used") >= 1);
}

#[test]
fn a_lock_that_is_released_with_nobody_in_the_queue_is_left_to_them_first() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut outsider = Outsider::new(&server);
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(outsider.woken(), "0");
    assert_eq!(mode(&mut client, "job"), "reserved");
    assert!(client.refused("RLOCK.ACQUIRE job alice 60000"));
    let mut waiter = crowd(&server, 1).remove(0);
    assert!(outsider.takes());
    assert_eq!(mode(&mut client, "job"), "exclusive");
    outsider.leaves();
    assert!(matches!(waiter.read(), Value::Int(_)));
    assert_eq!(counter(&mut client, "rlock_redisson_turns"), 1);
    assert_eq!(counter(&mut client, "rlock_redisson_turns_used"), 1);
}

#[test]
fn a_turn_that_nobody_uses_ends() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, "rlock.redisson-turn 50");
    client.int("RLOCK.ACQUIRE job alice 60000");
    let _outsider = Outsider::new(&server);
    client.int("RLOCK.RELEASE job alice");
    // A try is refused until then, a request that waits is granted then.
    eventually("a try", || !client.refused("RLOCK.ACQUIRE job alice 60000"));
    let mut waiter = crowd(&server, 1).remove(0);
    client.int("RLOCK.RELEASE job alice");
    assert!(matches!(waiter.read(), Value::Int(_)));
    assert_eq!(counter(&mut client, "rlock_redisson_turns_used"), 0);
    // The next one is further away now.
    for _ in 0..5 {
        client.int("RLOCK.RELEASE job w0");
        client.int("RLOCK.ACQUIRE job w0 60000");
    }
    assert_eq!(counter(&mut client, "rlock_redisson_turns"), 1);
}

#[test]
fn it_ends_when_nobody_listens_any_more() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, "rlock.redisson-turn 10000");
    for goes in [Outsider::goes as fn(Outsider), drop] {
        client.int("RLOCK.ACQUIRE job alice 60000");
        let mut outsider = Outsider::new(&server);
        client.int("RLOCK.RELEASE job alice");
        assert_eq!(outsider.woken(), "0");
        let mut waiter = crowd(&server, 1).remove(0);
        goes(outsider);
        // Long before the turn would be over by itself.
        let reply = waiter.read_within(BOUND / 2);
        assert!(matches!(reply, Some(Value::Int(_))), "{reply:?}");
        client.int("RLOCK.RELEASE job w0");
    }
}

#[test]
fn who_listens_to_a_pattern_has_none() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    let _monitor = Outsider::on(&server, "PSUBSCRIBE", "*");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut waiter = crowd(&server, 1).remove(0);
    client.int("RLOCK.RELEASE job alice");
    assert!(matches!(waiter.read(), Value::Int(_)));
    assert_eq!(counter(&mut client, "rlock_redisson_turns"), 0);
}

#[test]
fn both_settings_turn_it_off_at_once() {
    for off in ["rlock.redisson-turn 0", "rlock.redisson-compat no"] {
        let server = Server::start();
        let mut client = server.raw();
        set(&mut client, LONG_TURN);
        client.int("RLOCK.ACQUIRE job alice 60000");
        let _outsider = Outsider::new(&server);
        client.int("RLOCK.RELEASE job alice");
        assert_eq!(mode(&mut client, "job"), "reserved", "{off}");
        let mut waiter = crowd(&server, 1).remove(0);
        set(&mut client, off);
        assert!(matches!(waiter.read(), Value::Int(_)), "{off}");
        client.int("RLOCK.RELEASE job w0");
        client.int("RLOCK.ACQUIRE job alice 60000");
        assert_eq!(counter(&mut client, "rlock_redisson_turns"), 1, "{off}");
    }
}

#[test]
fn a_writer_of_redissons_comes_to_its_turn_among_readers() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    client.int("RLOCK.ACQUIRE job r0 60000 READ");
    let mut outsider = Outsider::on(&server, "SUBSCRIBE", "redisson_rwlock:{job}");
    // Readers come and go, and there is always one.
    let mut joined = 1;
    while !client.refused(&format!("RLOCK.ACQUIRE job r{joined} 60000 READ")) {
        client.int(&format!("RLOCK.RELEASE job r{} READ", joined - 1));
        joined += 1;
        assert!(joined < 20, "readers overtake for ever");
    }
    // A reader that is in may nest.
    client.int(&format!("RLOCK.ACQUIRE job r{} 60000 READ", joined - 1));
    client.int(&format!("RLOCK.RELEASE job r{} READ ALL", joined - 1));
    assert_eq!(outsider.woken(), "1");
    assert_eq!(mode(&mut client, "job"), "reserved");
    assert!(outsider.takes());
}

#[test]
fn in_a_cluster_sharded_channels_count() {
    let server = cluster();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut outsider = Outsider::on(&server, "SSUBSCRIBE", CHANNEL);
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(outsider.woken(), "0");
    assert_eq!(mode(&mut client, "job"), "reserved");
    assert!(outsider.takes());
}

#[test]
fn a_request_for_many_keys_waits_for_it_too() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut outsider = Outsider::new(&server);
    client.int("RLOCK.RELEASE job alice");
    let mut many = server.raw();
    many.send(&[
        "RLOCK.MACQUIRE",
        "2",
        "job",
        "z",
        "bob",
        "60000",
        "BLOCK",
        "0",
    ]);
    eventually("it waits", || {
        list(client.ask("RLOCK.WAITERS z")).len() == 1
    });
    assert_eq!(client.int("EXISTS job z"), 0);
    assert!(outsider.takes());
    outsider.leaves();
    assert!(matches!(many.read(), Value::Int(_)));
    assert_eq!(client.int("EXISTS job z"), 2);
}

#[test]
fn whatever_happens_in_a_turn_the_queue_goes_on() {
    for (happens, times) in [
        ("FLUSHALL", 1),
        ("SWAPDB 0 1", 2),
        ("DEBUG RELOAD", 1),
        ("RLOCK.FORCE job", 1),
        ("DEL job", 1),
        ("RENAME other job", 1),
    ] {
        let server = Server::start_with(&["--enable-debug-command", "yes"]);
        let mut client = server.raw();
        set(&mut client, "rlock.redisson-turn 200");
        client.int("RLOCK.ACQUIRE job alice 60000");
        let outsider = Outsider::new(&server);
        client.int("RLOCK.RELEASE job alice");
        let mut waiter = crowd(&server, 1).remove(0);
        if happens.starts_with("RENAME") {
            client.int("RLOCK.ACQUIRE other dave 100");
        }
        for _ in 0..times {
            client.ask(happens);
        }
        let reply = waiter.read_within(BOUND);
        assert!(matches!(reply, Some(Value::Int(_))), "{happens}: {reply:?}");
        drop(outsider);
        server.alive();
    }
}

#[test]
fn a_server_that_may_not_write_grants_to_nobody_after_it() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let _outsider = Outsider::new(&server);
    client.int("RLOCK.RELEASE job alice");
    let mut waiter = crowd(&server, 1).remove(0);
    client.int("RLOCK.ACQUIRE other alice 60000");
    let mut clock = server.raw();
    clock.send(&["RLOCK.ACQUIRE", "other", "bob", "60000", "BLOCK", "500"]);
    eventually("bob waits", || {
        list(client.ask("RLOCK.WAITERS other")).len() == 1
    });
    set(&mut client, "min-replicas-to-write 1");
    // The turn is over at the next look at it; of those the timer has many until
    // bob's time is over.
    set(&mut client, "rlock.redisson-turn 0");
    assert_eq!(clock.read(), Value::Nil);
    assert_eq!(mode(&mut client, "job"), "reserved");
    assert!(waiter.read_within(std::time::Duration::ZERO).is_none());
    set(&mut client, "min-replicas-to-write 0");
    assert!(matches!(waiter.read(), Value::Int(_)));
}

#[test]
fn one_native_client_in_a_loop_does_not_shut_them_out() {
    let server = Server::start();
    let mut client = server.raw();
    let mut outsider = Outsider::new(&server);
    let mut native = server.raw();
    let mut had = 0;
    eventually_within(BOUND, "the outsider had it ten times", || {
        native.int("RLOCK.ACQUIRE job alice 60000 BLOCK 0");
        native.int("RLOCK.RELEASE job alice");
        outsider.woken();
        if outsider.takes() {
            had += 1;
            outsider.leaves();
        }
        had >= 10
    });
    assert!(counter(&mut client, "rlock_redisson_turns_used") >= 1);
}
