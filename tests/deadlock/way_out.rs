//! Where a ring goes through the order of a queue, the request that would close it
//! is let past those who wait for its owner; and what is no ring at all.

use redis::Value;

use super::rings::ring;
use crate::support::ask::Ask;
use crate::support::locks::{code, has_waiters, info, token, Say, Waiter};
use crate::support::look::{counter, held_by, mode, set, waits};
use crate::support::{eventually, poll, RawClient, Server, BOUND};

#[track_caller]
fn take(client: &mut RawClient, key: &str, owner: &str) {
    token(client.say(&format!("RLOCK.ACQUIRE {key} {owner} 100000")));
}

fn ask(key: &str, owner: &str) -> String {
    format!("RLOCK.ACQUIRE {key} {owner} 100000 BLOCK 0")
}

#[track_caller]
fn release(client: &mut RawClient, key: &str, owner: &str) {
    let released = client.say(&format!("RLOCK.RELEASE {key} {owner}"));
    assert_eq!(released, Value::Int(0), "{key} {owner}");
}

#[test]
fn a_key_reserved_for_somebody_who_waits_for_me_is_mine() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "b", "a");
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    assert_eq!(mode(&mut control, "a"), "reserved");
    // A try is refused as ever; a request that would wait is let past.
    assert!(control.refused("RLOCK.ACQUIRE a a 1000"));
    let granted = token(control.say(&ask("a", "a")));
    assert_eq!(held_by(&mut control, "a"), "a exclusive 1");
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
    has_waiters(&mut control, "a", 1);
    // Whoever holds nothing that is waited for waits its turn.
    let mut other = Waiter::new(&server, "a", "z");
    release(&mut control, "a", "a");
    assert_eq!(mode(&mut control, "a"), "reserved");
    release(&mut control, "b", "a");
    assert!(many.token() > granted);
    assert_eq!(held_by(&mut control, "a"), "m exclusive 1");
    assert_eq!(control.say("RLOCK.MRELEASE 2 a b m"), Value::Int(2));
    other.token();
}

#[test]
fn it_is_let_past_all_who_wait_for_it_directly_or_not() {
    let server = Server::start();
    let mut control = server.raw();
    // m waits for z, which waits for a.
    take(&mut control, "c", "a");
    take(&mut control, "b", "z");
    let mut z = Waiter::new(&server, "c", "z");
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let mut behind = Waiter::new(&server, "a", "y");
    token(control.say(&ask("a", "a")));
    release(&mut control, "c", "a");
    z.token();
    release(&mut control, "a", "a");
    release(&mut control, "b", "z");
    many.token();
    control.say("RLOCK.MRELEASE 2 a b m");
    behind.token();
}

#[test]
fn it_waits_ahead_of_them_where_the_key_is_not_free() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "b", "a");
    take(&mut control, "a", "c");
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let mut first = waits(&server, &ask("a", "a"));
    has_waiters(&mut control, "a", 2);
    release(&mut control, "a", "c");
    first.token();
    assert_eq!(held_by(&mut control, "a"), "a exclusive 1");
    release(&mut control, "a", "a");
    release(&mut control, "b", "a");
    many.token();
}

#[test]
fn it_is_let_past_no_one_who_does_not_wait_for_it() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "b", "a");
    take(&mut control, "a", "c");
    let mut stranger = Waiter::new(&server, "a", "z");
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    // Behind the stranger, ahead of the one who waits for it.
    let mut middle = waits(&server, &ask("a", "a"));
    release(&mut control, "a", "c");
    stranger.token();
    release(&mut control, "a", "z");
    middle.token();
    release(&mut control, "a", "a");
    release(&mut control, "b", "a");
    many.token();
}

#[test]
fn a_reader_is_let_past_a_writer_that_waits_for_it() {
    let server = Server::start();
    let mut control = server.raw();
    token(control.say("RLOCK.ACQUIRE x r1 100000 READ"));
    take(&mut control, "z", "r2");
    // The writer's owner waits for r2 elsewhere.
    let mut writer = waits(&server, "RLOCK.ACQUIRE x w 100000 WRITE BLOCK 0");
    let mut elsewhere = waits(&server, &ask("z", "w"));
    token(control.say("RLOCK.ACQUIRE x r2 100000 READ BLOCK 0"));
    assert_eq!(held_by(&mut control, "x"), "r1 read 1, r2 read 1");
    release(&mut control, "z", "r2");
    elsewhere.token();
    control.say("RLOCK.RELEASE x r1 READ");
    control.say("RLOCK.RELEASE x r2 READ");
    writer.token();
}

#[test]
fn a_long_chain_is_no_ring() {
    const LENGTH: usize = 60;
    let server = Server::start();
    let mut control = server.raw();
    for n in 0..LENGTH {
        take(&mut control, &format!("k{n}"), &format!("o{n}"));
    }
    let mut waiters: Vec<_> = (1..LENGTH)
        .map(|n| Waiter::new(&server, &format!("k{}", n - 1), &format!("o{n}")))
        .collect();
    assert_eq!(counter(&mut control, "rlock_waiting"), LENGTH as i64 - 1);
    for (n, waiter) in waiters.iter_mut().enumerate() {
        if n > 0 {
            release(&mut control, &format!("k{}", n - 1), &format!("o{n}"));
        }
        release(&mut control, &format!("k{n}"), &format!("o{n}"));
        waiter.token();
    }
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
}

#[test]
fn many_who_wait_for_one_are_no_ring() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "a");
    take(&mut control, "y", "a");
    take(&mut control, "z", "b");
    // Two ways from c to a, and none back.
    let mut waiters = [
        Waiter::new(&server, "x", "b"),
        Waiter::new(&server, "y", "c"),
        Waiter::new(&server, "z", "c"),
        Waiter::new(&server, "x", "c"),
    ];
    control.say("RLOCK.RELEASE y a");
    waiters[1].token();
    control.say("RLOCK.RELEASE x a");
    waiters[0].token();
    release(&mut control, "z", "b");
    waiters[2].token();
    release(&mut control, "x", "b");
    waiters[3].token();
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
}

#[test]
fn an_owner_does_not_wait_for_itself() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "k", "b");
    let mut twice = [
        Waiter::new(&server, "k", "a"),
        Waiter::new(&server, "k", "a"),
    ];
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 k l a 100000 BLOCK 0");
    has_waiters(&mut control, "k", 3);
    // Waiting for l, where one's own request stands first, either.
    let mut same = waits(&server, &ask("l", "a"));
    release(&mut control, "k", "b");
    for waiter in &mut twice {
        waiter.token();
    }
    many.token();
    same.token();
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
}

#[test]
fn requests_for_the_same_keys_in_any_order_are_no_ring() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "a", "z");
    take(&mut control, "b", "y");
    let mut one = waits(&server, "RLOCK.MACQUIRE 2 a b one 100000 BLOCK 0");
    let mut two = waits(&server, "RLOCK.MACQUIRE 2 b a two 100000 BLOCK 0");
    let mut three = waits(&server, "RLOCK.MACQUIRE 3 c b a three 100000 BLOCK 0");
    release(&mut control, "b", "y");
    release(&mut control, "a", "z");
    one.token();
    control.say("RLOCK.MRELEASE 2 a b one");
    two.token();
    control.say("RLOCK.MRELEASE 2 a b two");
    three.token();
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
}

#[test]
fn a_grant_to_an_owner_that_waits_elsewhere_closes_no_ring() {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    take(&mut control, "x", "q");
    take(&mut control, "y", "s");
    let mut for_x = Waiter::new(&server, "x", "p");
    let mut for_y = Waiter::new(&server, "y", "p");
    // Behind p, whom it makes wait: nobody looked.
    let mut s = Waiter::new(&server, "x", "s");
    set(&mut control, "rlock.deadlock-detection yes");
    // p, once it holds x, would wait for s, which waits for p.
    release(&mut control, "x", "q");
    let told = poll(BOUND, || {
        let soon = std::time::Duration::from_millis(5);
        let second = for_y.client.read_within(soon);
        second.or_else(|| match for_x.client.read_within(soon) {
            Some(error @ Value::ServerError(_)) => Some(error),
            _ => None,
        })
    });
    let line = ring(told.expect("one of p's requests is refused"));
    assert!(line.contains("p waits for y (s)"), "{line}");
    assert!(line.contains("s waits for x (p)"), "{line}");
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 1);
    // Nobody is stuck: whoever has x lets go, and s is done.
    if held_by(&mut control, "x") == "p exclusive 1" {
        release(&mut control, "x", "p");
    }
    s.token();
}

#[test]
fn a_lock_that_a_waiting_owner_came_to_in_another_way_closes_no_ring() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "q");
    take(&mut control, "y", "w");
    take(&mut control, "source", "p");
    let mut p = Waiter::new(&server, "y", "p");
    let mut w = Waiter::new(&server, "x", "w");
    // x becomes p's by no request of p's.
    assert_eq!(control.say("RENAME source x"), Value::Okay);
    let line = ring(p.client.read());
    assert!(line.contains("p waits for y (w)"), "{line}");
    assert!(line.contains("w waits for x (p)"), "{line}");
    has_waiters(&mut control, "x", 1);
    release(&mut control, "x", "p");
    w.token();
}

#[test]
fn a_request_that_is_refused_keeps_its_connection_and_the_queues_in_order() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "a");
    take(&mut control, "y", "b");
    let mut a = Waiter::new(&server, "y", "a");
    let mut c = Waiter::new(&server, "x", "c");
    let mut b = server.raw();
    for _ in 0..20 {
        assert_eq!(code(&b.say(&ask("x", "b"))), "DEADLOCK");
    }
    let mut d = Waiter::new(&server, "x", "d");
    assert_eq!(info(&mut control, "x").waiters, 2);
    eventually("its connection is in step", || {
        b.say("PING") == crate::support::locks::pong()
    });
    release(&mut b, "y", "b");
    a.token();
    release(&mut control, "x", "a");
    c.token();
    release(&mut control, "x", "c");
    d.token();
}

#[test]
fn a_request_for_many_keys_is_let_past_too() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "b", "a");
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    assert_eq!(control.say("RLOCK.MACQUIRE 2 a c a 1000"), Value::Nil);
    token(control.say("RLOCK.MACQUIRE 2 a c a 100000 BLOCK 0"));
    assert_eq!(held_by(&mut control, "a"), "a exclusive 1");
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
    assert_eq!(control.say("RLOCK.MRELEASE 3 a b c a"), Value::Int(3));
    many.token();
}
