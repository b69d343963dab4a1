//! A hold with WATCHDOG ends with its connection, however that closes, and the
//! first waiter is granted. The leases here are so long that only the close can
//! have done it.

use redis::Value;

use crate::support::{
    code, eventually, int, now_ms, pass, Ask, Bound, Listener, RawClient, Server, Waiter,
};

#[derive(Clone, Copy, Debug)]
enum Way {
    Close,
    CloseHalf,
    Reset,
    Quit,
    Kill,
    KillItself,
    Nonsense,
}

const WAYS: [Way; 7] = [
    Way::Close,
    Way::CloseHalf,
    Way::Reset,
    Way::Quit,
    Way::Kill,
    Way::KillItself,
    Way::Nonsense,
];

/// Ends a connection. It is handed back where it still may hear of it.
fn end(way: Way, mut bound: Bound, control: &mut RawClient) -> Option<RawClient> {
    match way {
        Way::Close => bound.client.close(),
        Way::Reset => bound.client.reset(),
        Way::CloseHalf => {
            bound.client.close_half();
            return Some(bound.client);
        }
        Way::Quit => {
            bound.client.send("QUIT");
            return Some(bound.client);
        }
        Way::Kill => {
            assert_eq!(control.int(&format!("CLIENT KILL ID {}", bound.id)), 1);
            return Some(bound.client);
        }
        Way::KillItself => {
            let kill = format!("CLIENT KILL ID {} SKIPME no", bound.id);
            bound.client.send(&kill);
            return Some(bound.client);
        }
        Way::Nonsense => {
            bound.client.send_bytes(b"*1\r\nnonsense\r\n");
            return Some(bound.client);
        }
    }
    None
}

#[test]
fn however_a_connection_closes_its_lock_goes_to_the_next() {
    let server = Server::start();
    let mut control = server.raw();
    for way in WAYS {
        println!("{way:?}");
        let held = Bound::new(&server, "k", "a");
        let first_token = held.token;
        let mut first = Waiter::new(&server, "k", "b");
        let mut second = Waiter::new(&server, "k", "c");
        let rest = end(way, held, &mut control);
        assert!(first.token() > first_token, "{way:?}");
        assert_eq!(control.hash("k"), "b=1", "{way:?}");
        assert_eq!(control.watchdog("k"), None, "{way:?}");
        control.has_waiters("k", 1);
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
        second.token();
        assert_eq!(control.int("RLOCK.RELEASE k c"), 0);
        control.is_free("k");
        drop(rest);
    }
    server.alive();
}

#[test]
fn however_a_connection_closes_its_lock_is_free_when_nobody_waits() {
    let server = Server::start();
    let mut control = server.raw();
    for way in WAYS {
        println!("{way:?}");
        let held = Bound::new(&server, "k", "a");
        assert_eq!(control.watchdog("k"), Some(held.id));
        let rest = end(way, held, &mut control);
        control.goes_free("k");
        assert_eq!(control.counter("rlock_watchdog_holds"), 0);
        drop(rest);
    }
}

#[test]
fn a_close_ends_the_watchdog_holds_of_that_connection_and_no_others() {
    let server = Server::start();
    let mut control = server.raw();
    let mut stays = Bound::new(&server, "others", "a");
    let mut goes = server.raw();
    for request in [
        "RLOCK.ACQUIRE first a 100000 WATCHDOG",
        "RLOCK.ACQUIRE second b 100000 WATCHDOG",
        "RLOCK.ACQUIRE plain a 100000",
        "SELECT 1",
        "RLOCK.ACQUIRE elsewhere a 100000 WATCHDOG",
    ] {
        goes.ask(request);
    }
    goes.close();
    control.goes_free("first");
    control.goes_free("second");
    assert_eq!(control.held_by("plain"), "a exclusive 1");
    assert_eq!(control.watchdog("others"), Some(stays.id));
    control.ask("SELECT 1");
    control.goes_free("elsewhere");
    stays.client.in_step();
}

#[test]
fn a_hold_of_the_same_owner_on_another_connection_outlives_a_close() {
    let server = Server::start();
    let mut control = server.raw();
    for second in ["k a 100000", "k a 100000 WATCHDOG"] {
        let goes = Bound::new(&server, "k", "a");
        let mut other = server.raw();
        let id = other.client_id();
        let again = other.ask(&format!("RLOCK.ACQUIRE {second}"));
        assert_eq!(again, Value::Int(goes.token), "nested");
        let mut waiter = Waiter::new(&server, "k", "b");
        goes.client.close();
        eventually("one hold is left", || {
            control.held_by("k") == "a exclusive 1"
        });
        let left = control.only("k");
        assert_eq!(left.token, Some(goes.token));
        assert_eq!(left.watchdog.is_some(), second.contains("WATCHDOG"));
        assert!(left.watchdog.is_none_or(|bound| bound == id), "{left:?}");
        control.has_waiters("k", 1);
        assert_eq!(other.int("RLOCK.RELEASE k a"), 0);
        waiter.token();
        control.ask("RLOCK.RELEASE k b");
    }
}

#[test]
fn a_lock_that_was_waited_for_is_bound_from_the_grant_on() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut bound = Waiter::with(&server, "k b 100000 BLOCK 0 WATCHDOG");
    let mut next = Waiter::new(&server, "k", "c");
    assert_eq!(control.watchdog("k"), None);
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
    control.ask("RLOCK.RELEASE k a");
    let granted = bound.token();
    let hold = control.only("k");
    assert_eq!((hold.token, hold.watchdog), (Some(granted), Some(bound.id)));
    assert_eq!(control.counter("rlock_watchdog_holds"), 1);
    bound.client.close();
    assert!(next.token() > granted);
    assert_eq!(control.watchdog("k"), None);
}

#[test]
fn a_connection_that_closes_while_it_waits_is_never_granted() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let goes = Waiter::with(&server, "k b 100000 BLOCK 0 WATCHDOG");
    let mut next = Waiter::new(&server, "k", "c");
    control.has_waiters("k", 2);
    goes.client.close();
    control.has_waiters("k", 1);
    assert_eq!(control.int("RLOCK.RELEASE k a"), 0);
    next.token();
    assert_eq!(control.hash("k"), "c=1");
}

#[test]
fn a_dying_connection_is_not_granted_what_it_frees_itself() {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..50 {
        let held = Bound::new(&server, "k", "a");
        let mut dies = Waiter::on(held.client, "RLOCK.ACQUIRE k b 100000 BLOCK 0 WATCHDOG");
        let mut next = Waiter::new(&server, "k", "c");
        if round % 2 == 0 {
            control.ask(&format!("CLIENT KILL ID {}", dies.id));
            assert!(dies.client.is_closed());
        } else {
            dies.client.close();
        }
        next.token();
        assert_eq!(control.held_by("k"), "c exclusive 1");
        assert_eq!(control.int("RLOCK.RELEASE k c"), 0);
        control.is_free("k");
    }
}

#[test]
fn a_grant_whose_client_was_killed_before_its_reply_goes_on() {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..100 {
        control.ask("RLOCK.ACQUIRE k a 100000");
        let mut lost = Waiter::with(&server, "k b 100000 BLOCK 0 WATCHDOG");
        let mut next = Waiter::with(&server, "k c 100000 BLOCK 0 WATCHDOG");
        let kill = format!("CLIENT KILL ID {}", lost.id);
        let requests = ["RLOCK.RELEASE k a", &kill];
        if round % 2 == 0 {
            control.ask_all(&requests);
        } else {
            control.ask_all(&["MULTI", requests[0], requests[1], "EXEC"]);
        }
        assert!(lost.client.is_closed());
        next.token();
        assert_eq!(control.watchdog("k"), Some(next.id));
        assert_eq!(control.counter("rlock_watchdog_holds"), 1);
        assert_eq!(control.int("RLOCK.RELEASE k c"), 0);
        control.is_free("k");
        // The release was its owner's: the connection stays.
        next.client.in_step();
    }
}

#[test]
fn a_wait_that_ends_takes_no_hold_of_its_connection_along() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE taken z 100000");
    let held = Bound::new(&server, "k", "a");
    let (id, token) = (held.id, held.token);
    let mut waiter = Waiter::on(held.client, "RLOCK.ACQUIRE taken a 100000 BLOCK 0 WATCHDOG");
    for how in ["ERROR", "TIMEOUT"] {
        control.ask(&format!("CLIENT UNBLOCK {id} {how}"));
        match (how, waiter.client.read()) {
            ("ERROR", error) => assert_eq!(code(&error), "UNBLOCKED"),
            (_, reply) => assert_eq!(reply, Value::Nil),
        }
        waiter = Waiter::on(waiter.client, "RLOCK.ACQUIRE taken a 100000 BLOCK 0");
    }
    // Time enough for a release that should not be.
    pass(now_ms() + 300);
    let hold = control.only("k");
    assert_eq!((hold.token, hold.watchdog), (Some(token), Some(id)));
    waiter.client.close();
    control.goes_free("k");
}

#[test]
fn hundreds_of_locks_of_one_connection_end_with_it() {
    const LOCKS: usize = 1000;
    let server = Server::start();
    let mut control = server.raw();
    let mut holder = server.raw();
    let all: Vec<_> = (0..LOCKS)
        .map(|n| format!("RLOCK.ACQUIRE k{n} a{n} 100000 WATCHDOG"))
        .collect();
    assert!(holder.ask_all(&all).into_iter().all(|reply| int(reply) > 0));
    assert_eq!(control.counter("rlock_watchdog_holds"), LOCKS as i64);
    let mut waiters: Vec<_> = (0..LOCKS)
        .step_by(100)
        .map(|n| Waiter::new(&server, &format!("k{n}"), "next"))
        .collect();
    holder.close();
    for waiter in &mut waiters {
        waiter.token();
    }
    eventually("all others are gone", || {
        control.ask("DBSIZE") == Value::Int(waiters.len() as i64)
    });
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
    server.alive();
}

#[test]
fn hundreds_of_connections_that_close_hand_one_lock_on() {
    let server = Server::start();
    let mut control = server.raw();
    let first = Bound::new(&server, "k", "first");
    let waiting: Vec<_> = (0..200)
        .map(|n| Waiter::with(&server, &format!("k w{n} 100000 BLOCK 0 WATCHDOG")))
        .collect();
    let mut last = Waiter::new(&server, "k", "last");
    control.has_waiters("k", 201);
    first.client.close();
    // Some die while they wait, some just as they are granted.
    drop(waiting);
    last.token();
    assert_eq!(control.held_by("k"), "last exclusive 1");
    control.ask("RLOCK.RELEASE k last");
    control.is_free("k");
}

#[test]
fn a_silent_holder_that_the_server_drops_frees_its_lock() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::new(&server, "k", "a");
    control.ok("CONFIG SET timeout 1");
    // It may drop this one too, so each look is by a new one.
    eventually("the lock is free", || server.raw().held_by("k").is_empty());
    assert!(held.client.is_closed());
}

#[test]
fn a_close_is_announced_as_a_release() {
    let server = Server::start();
    let mut control = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    let held = Bound::new(&server, "k", "a");
    held.client.close();
    control.goes_free("k");
    let told: Vec<_> = events.events();
    let of_k: Vec<_> = told.iter().filter(|event| event.1 == "k").collect();
    let count = |name: &str| of_k.iter().filter(|event| event.0 == name).count();
    assert_eq!(count("rlock.acquired"), 1, "{told:?}");
    assert_eq!(count("rlock.released"), 1, "{told:?}");
    assert_eq!(count("del"), 1, "{told:?}");
    for other in ["rlock.expired", "rlock.forced", "rlock.renewed", "expired"] {
        assert_eq!(count(other), 0, "{other}: {told:?}");
    }

    // With a waiter, and with an outer hold that stays.
    control.ask("RLOCK.ACQUIRE k a 100000");
    let inner = Bound::new(&server, "k", "a");
    events.events();
    inner.client.close();
    eventually("one hold is left", || {
        control.held_by("k") == "a exclusive 1"
    });
    let told = events.events();
    let released = ("rlock.released".to_owned(), "k".to_owned());
    assert_eq!(told.iter().filter(|event| **event == released).count(), 1);
    assert!(
        !told.contains(&("del".to_owned(), "k".to_owned())),
        "{told:?}"
    );
}
