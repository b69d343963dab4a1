//! Waiters that go before they are granted: nobody waits behind a ghost, and
//! nothing is granted to one.

use redis::Value;

use crate::support::locks::{code, has_waiters, holder, info, is_free, Say, Waiter};
use crate::support::{RawClient, Server};

type Leave = fn(&mut RawClient, Waiter) -> Option<Waiter>;

fn unblocked(control: &mut RawClient, waiter: &Waiter, how: &str) {
    let done = control.say(&format!("CLIENT UNBLOCK {} {how}", waiter.id));
    assert_eq!(done, Value::Int(1));
}

/// The ways to go. What comes back still has its connection, and has been told.
const WAYS: [(&str, Leave); 5] = [
    ("close", |_, waiter| {
        waiter.client.close();
        None
    }),
    ("CLIENT KILL", |control, mut waiter| {
        let killed = control.say(&format!("CLIENT KILL ID {}", waiter.id));
        assert_eq!(killed, Value::Int(1));
        assert!(waiter.client.is_closed());
        None
    }),
    ("CLIENT UNBLOCK", |control, mut waiter| {
        unblocked(control, &waiter, "");
        assert_eq!(waiter.client.read(), Value::Nil);
        Some(waiter)
    }),
    ("CLIENT UNBLOCK TIMEOUT", |control, mut waiter| {
        unblocked(control, &waiter, "TIMEOUT");
        assert_eq!(waiter.client.read(), Value::Nil);
        Some(waiter)
    }),
    ("CLIENT UNBLOCK ERROR", |control, mut waiter| {
        unblocked(control, &waiter, "ERROR");
        assert_eq!(code(&waiter.client.read()), "UNBLOCKED");
        Some(waiter)
    }),
];

/// With `before` waiters ahead of the one that leaves and `after` behind it.
fn leaves_from_the_middle(server: &Server, way: Leave, before: usize, after: usize) {
    let mut control = server.raw();
    control.say("FLUSHALL");
    control.say("RLOCK.ACQUIRE k a 100000");
    let all = |prefix: &str, count| -> Vec<(String, Waiter)> {
        (0..count)
            .map(|n| format!("{prefix}{n}"))
            .map(|owner| (owner.clone(), Waiter::new(server, "k", &owner)))
            .collect()
    };
    let mut staying = all("ahead", before);
    let gone = Waiter::with(server, "k gone 100000 BLOCK 60000");
    staying.extend(all("behind", after));
    let gone = way(&mut control, gone);
    has_waiters(&mut control, "k", staying.len() as i64);

    let mut last = "a".to_owned();
    for (owner, waiter) in &mut staying {
        control.say(&format!("RLOCK.RELEASE k {last}"));
        assert_eq!(holder(&mut control, "k").as_ref(), Some(&*owner));
        waiter.token();
        last.clone_from(owner);
    }
    control.say(&format!("RLOCK.RELEASE k {last}"));
    is_free(&mut control, "k");

    // Who still has a connection was told once, and can wait again.
    if let Some(mut waiter) = gone {
        waiter.in_step();
        control.say("RLOCK.ACQUIRE k a 100000");
        let mut again = Waiter::on(waiter.client, "RLOCK.ACQUIRE k gone 100000 BLOCK 0");
        assert_eq!(info(&mut control, "k").waiters, 1);
        control.say("RLOCK.RELEASE k a");
        again.token();
        again.in_step();
    }
}

#[test]
fn a_waiter_that_leaves_is_passed_over() {
    let server = Server::start();
    for (name, way) in WAYS {
        println!("{name}");
        for (before, after) in [(0, 0), (0, 2), (2, 0), (1, 1)] {
            leaves_from_the_middle(&server, way, before, after);
        }
    }
    server.alive();
}

#[test]
fn all_waiters_leave_and_nothing_is_left_of_them() {
    let server = Server::start();
    let mut control = server.raw();
    control.say("RLOCK.ACQUIRE k a 100000");
    for (name, way) in WAYS {
        let waiters: Vec<_> = (0..20)
            .map(|n| Waiter::new(&server, "k", &format!("w{n}")))
            .collect();
        let clients: Vec<_> = waiters
            .into_iter()
            .filter_map(|waiter| way(&mut control, waiter))
            .collect();
        has_waiters(&mut control, "k", 0);
        assert_eq!(info(&mut control, "k").oldest_wait_ms, None, "{name}");
        for mut client in clients {
            client.in_step();
        }
    }
    assert_eq!(control.say("RLOCK.RELEASE k a"), Value::Int(0));
    is_free(&mut control, "k");
}

#[test]
fn only_the_request_that_left_is_gone_not_its_owners_other_ones() {
    let server = Server::start();
    let mut control = server.raw();
    for (name, way) in WAYS {
        control.say("FLUSHALL");
        control.say("RLOCK.ACQUIRE k a 100000");
        let gone = Waiter::new(&server, "k", "b");
        let mut other = Waiter::new(&server, "k", "c");
        let mut second = Waiter::new(&server, "k", "b");
        let mut elsewhere = server.raw();
        elsewhere.say("SELECT 1");
        elsewhere.say("RLOCK.ACQUIRE k a 100000");
        elsewhere.tell("RLOCK.ACQUIRE k b 100000 BLOCK 0");
        let kept = way(&mut control, gone);
        has_waiters(&mut control, "k", 2);
        control.say("RLOCK.RELEASE k a");
        assert_eq!(holder(&mut control, "k").as_deref(), Some("c"), "{name}");
        other.token();
        control.say("RLOCK.RELEASE k c");
        second.token();
        drop(kept);
    }
}

#[test]
fn a_waiter_that_leaves_behind_a_dying_holder_leaves_the_lock_to_the_next() {
    // The holder's connection means nothing to a plain lock: the lease does.
    let server = Server::start();
    let mut control = server.raw();
    let mut holding = server.raw();
    holding.say("RLOCK.ACQUIRE k a 100000");
    let gone = Waiter::new(&server, "k", "b");
    let mut next = Waiter::new(&server, "k", "c");
    holding.close();
    gone.client.close();
    has_waiters(&mut control, "k", 1);
    control.say("PEXPIRE k 100");
    next.token();
    assert_eq!(holder(&mut control, "k").as_deref(), Some("c"));
}
