//! Those who wait by subscription, as Redisson does, get their turn: the lock is left
//! free for them at times, however many wait in the queue.

use std::time::Duration;

use redis::Value;

use super::outsider::{crowd, Outsider, CHANNEL, LONG_TURN};
use crate::support::{
    cluster, eventually, eventually_within, Ask, RawClient, Server, Waiter, BOUND,
};

/// Each of them that is granted releases at once; how many were before the lock was
/// left free.
fn granted_before_a_yield(client: &mut RawClient, crowd: &mut [Waiter]) -> usize {
    for (number, waiter) in crowd.iter_mut().enumerate() {
        if client.mode("job") == "reserved" {
            return number;
        }
        waiter.token();
        client.int(&format!("RLOCK.RELEASE job w{number}"));
    }
    crowd.len()
}

#[test]
fn one_comes_after_eight_grants_at_most_and_the_queue_goes_on_after_it() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut crowd = crowd(&server, 14);
    let mut outsider = Outsider::new(&server);
    assert!(!outsider.takes());
    client.int("RLOCK.RELEASE job alice");
    let before = granted_before_a_yield(&mut client, &mut crowd);
    assert!((1..=8).contains(&before), "{before}");
    assert_eq!(outsider.woken(), "0");
    // Nobody else has it meanwhile.
    assert!(client.refused("RLOCK.ACQUIRE job bob 60000"));
    assert!(client.refused("RLOCK.MACQUIRE 2 job other bob 60000"));
    crowd[before].still_waits();
    assert!(outsider.takes());
    outsider.leaves();
    for (number, waiter) in crowd.iter_mut().enumerate().skip(before) {
        // It listens still, and so it may have another turn.
        eventually("the next is granted", || {
            if client.mode("job") == "reserved" && outsider.takes() {
                outsider.leaves();
            }
            client.mode("job") == "exclusive"
        });
        waiter.token();
        client.int(&format!("RLOCK.RELEASE job w{number}"));
    }
    assert!(client.counter("rlock_redisson_yields_used") >= 1);
}

#[test]
fn a_lock_that_is_released_with_nobody_in_the_queue_is_left_to_them_first() {
    let (server, mut client, mut outsider) = Outsider::in_its_turn(10_000);
    assert_eq!(outsider.woken(), "0");
    assert_eq!(client.mode("job"), "reserved");
    assert!(client.refused("RLOCK.ACQUIRE job alice 60000"));
    let mut waiter = crowd(&server, 1).remove(0);
    assert!(outsider.takes());
    assert_eq!(client.mode("job"), "exclusive");
    outsider.leaves();
    waiter.token();
    assert_eq!(client.counter("rlock_redisson_yields"), 1);
    assert_eq!(client.counter("rlock_redisson_yields_used"), 1);
}

#[test]
fn a_yield_that_nobody_uses_ends() {
    let (server, mut client, _outsider) = Outsider::in_its_turn(50);
    // A try is refused until then, a request that waits is granted then.
    eventually("a try", || !client.refused("RLOCK.ACQUIRE job alice 60000"));
    let mut waiter = crowd(&server, 1).remove(0);
    client.int("RLOCK.RELEASE job alice");
    waiter.token();
    assert_eq!(client.counter("rlock_redisson_yields_used"), 0);
    // The next one is further away now.
    for _ in 0..5 {
        client.int("RLOCK.RELEASE job w0");
        client.int("RLOCK.ACQUIRE job w0 60000");
    }
    assert_eq!(client.counter("rlock_redisson_yields"), 1);
}

#[test]
fn it_ends_when_nobody_listens_any_more() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.redisson-yield 10000");
    for goes in [Outsider::goes as fn(Outsider), drop] {
        client.int("RLOCK.ACQUIRE job alice 60000");
        let mut outsider = Outsider::new(&server);
        client.int("RLOCK.RELEASE job alice");
        assert_eq!(outsider.woken(), "0");
        let mut waiter = crowd(&server, 1).remove(0);
        goes(outsider);
        // Long before the turn would be over by itself.
        let reply = waiter.client.read_within(Duration::from_secs(9));
        assert!(matches!(reply, Some(Value::Int(_))), "{reply:?}");
        client.int("RLOCK.RELEASE job w0");
    }
}

#[test]
fn who_listens_to_a_pattern_has_none() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(LONG_TURN);
    let _monitor = Outsider::on(&server, "PSUBSCRIBE", "*");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut waiter = crowd(&server, 1).remove(0);
    client.int("RLOCK.RELEASE job alice");
    waiter.token();
    assert_eq!(client.counter("rlock_redisson_yields"), 0);
}

#[test]
fn both_settings_turn_it_off_at_once() {
    for off in ["rlock.redisson-yield 0", "rlock.redisson-compat no"] {
        let (server, mut client, _outsider) = Outsider::in_its_turn(10_000);
        assert_eq!(client.mode("job"), "reserved", "{off}");
        let mut waiter = crowd(&server, 1).remove(0);
        client.ok(&format!("CONFIG SET {off}"));
        waiter.token();
        client.int("RLOCK.RELEASE job w0");
        client.int("RLOCK.ACQUIRE job alice 60000");
        assert_eq!(client.counter("rlock_redisson_yields"), 1, "{off}");
    }
}

#[test]
fn a_writer_of_redissons_comes_to_its_turn_among_readers() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(LONG_TURN);
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
    assert_eq!(client.mode("job"), "reserved");
    assert!(outsider.takes());
}

#[test]
fn in_a_cluster_sharded_channels_count() {
    let server = cluster();
    let mut client = server.raw();
    client.ok(LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut outsider = Outsider::on(&server, "SSUBSCRIBE", CHANNEL);
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(outsider.woken(), "0");
    assert_eq!(client.mode("job"), "reserved");
    assert!(outsider.takes());
}

#[test]
fn a_request_for_many_keys_waits_for_it_too() {
    let (server, mut client, mut outsider) = Outsider::in_its_turn(10_000);
    let mut many = Waiter::by(&server, "RLOCK.MACQUIRE 2 job z bob 60000 BLOCK 0");
    assert_eq!(client.waiters("z"), 1);
    assert_eq!(client.int("EXISTS job z"), 0);
    assert!(outsider.takes());
    outsider.leaves();
    many.token();
    assert_eq!(client.int("EXISTS job z"), 2);
}

#[test]
fn whatever_happens_in_a_yield_the_queue_goes_on() {
    for (happens, times) in [
        ("FLUSHALL", 1),
        ("SWAPDB 0 1", 2),
        ("DEBUG RELOAD", 1),
        ("RLOCK.FORCE job", 1),
        ("DEL job", 1),
        ("RENAME other job", 1),
    ] {
        let (server, mut client, outsider) = Outsider::in_its_turn(1000);
        let mut waiter = crowd(&server, 1).remove(0);
        if happens.starts_with("RENAME") {
            client.int("RLOCK.ACQUIRE other dave 100");
        }
        for _ in 0..times {
            client.ask(happens);
        }
        let reply = waiter.client.read_within(BOUND);
        assert!(matches!(reply, Some(Value::Int(_))), "{happens}: {reply:?}");
        drop(outsider);
        server.alive();
    }
}

#[test]
fn a_server_that_may_not_write_grants_to_nobody_after_it() {
    let (server, mut client, _outsider) = Outsider::in_its_turn(10_000);
    let mut waiter = crowd(&server, 1).remove(0);
    client.int("RLOCK.ACQUIRE other alice 60000");
    let mut clock = Waiter::with(&server, "other bob 60000 BLOCK 500");
    assert_eq!(client.waiters("other"), 1);
    client.ok("CONFIG SET min-replicas-to-write 1");
    // The turn is over at the next look at it; of those the timer has many until
    // bob's time is over.
    client.ok("CONFIG SET rlock.redisson-yield 0");
    assert_eq!(clock.client.read(), Value::Nil);
    assert_eq!(client.mode("job"), "reserved");
    waiter.still_waits();
    client.ok("CONFIG SET min-replicas-to-write 0");
    waiter.token();
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
    assert!(client.counter("rlock_redisson_yields_used") >= 1);
}
