//! RENEW … WATCHDOG binds the owner's holds on a key to the connection that says it.

use redis::Value;

use crate::support::{list, longest, now_ms, pass, Ask, Bound, RawClient, Server, Waiter};

/// A connection that has said RENEW … WATCHDOG.
#[track_caller]
fn bind(server: &Server, request: &str) -> (RawClient, i64) {
    let mut client = server.raw();
    let id = client.client_id();
    assert_eq!(client.int(request), 1, "{request}");
    (client, id)
}

#[test]
fn it_binds_what_this_connection_holds() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    let id = client.client_id();
    let granted = client.token("RLOCK.ACQUIRE k a 100000");
    client.ask("RLOCK.ACQUIRE k a 100000");
    assert_eq!(control.watchdog("k"), None);
    assert_eq!(client.int("RLOCK.RENEW k a 1200 WATCHDOG"), 1);
    pass(now_ms() + 4000);
    let hold = control.only("k");
    assert_eq!((hold.holds, hold.token), (2, Some(granted)));
    assert_eq!(hold.watchdog, Some(id));
    assert!(hold.remaining_ms <= Some(longest(1200)), "{hold:?}");
    let mut next = Waiter::new(&server, "k", "b");
    client.close();
    next.token();
    assert_eq!(control.held_by("k"), "b exclusive 1");
}

#[test]
fn it_binds_what_another_connection_holds() {
    let server = Server::start();
    let mut control = server.raw();
    let mut taker = server.raw();
    let granted = taker.token("RLOCK.ACQUIRE k a 100000");
    let (client, id) = bind(&server, "RLOCK.RENEW k a 100000 WATCHDOG");
    let hold = control.only("k");
    assert_eq!((hold.token, hold.watchdog), (Some(granted), Some(id)));
    taker.close();
    pass(now_ms() + 300);
    assert_eq!(control.hash("k"), "a=1");
    client.close();
    control.goes_free("k");
}

#[test]
fn it_takes_a_watchdog_hold_over_from_another_connection() {
    let server = Server::start();
    let mut control = server.raw();
    let mut former = Bound::new(&server, "k", "a");
    let (mut client, id) = bind(&server, "RLOCK.RENEW k a 100000 WATCHDOG");
    assert_eq!(control.watchdog("k"), Some(id));
    assert_eq!(control.counter("rlock_watchdog_holds"), 1);
    former.client.in_step();
    former.client.close();
    pass(now_ms() + 300);
    assert_eq!(control.held_by("k"), "a exclusive 1");
    // Lost, it is the new connection that is told.
    assert_eq!(control.int("RLOCK.FORCE k"), 1);
    assert!(client.is_closed());
}

#[test]
fn the_former_connection_learns_of_nothing_once_it_was_taken_over() {
    let server = Server::start();
    let mut control = server.raw();
    let mut former = Bound::new(&server, "k", "a");
    let (client, _) = bind(&server, "RLOCK.RENEW k a 100000 WATCHDOG");
    client.close();
    control.goes_free("k");
    former.client.in_step();
}

#[test]
fn it_binds_holds_that_were_found_in_the_keyspace() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask_all(&["HSET k uuid:1 2", "PEXPIRE k 5000"]);
    let (client, id) = bind(&server, "RLOCK.RENEW k uuid:1 300 WATCHDOG");
    pass(now_ms() + 2000);
    let hold = control.only("k");
    assert_eq!((hold.holds, hold.watchdog), (2, Some(id)));
    assert!(hold.remaining_ms <= Some(longest(300)), "{hold:?}");
    client.close();
    control.goes_free("k");
}

#[test]
fn it_binds_a_hold_again_after_a_restart() {
    let mut server = Server::start_with(&["--appendonly", "yes"]);
    let mut held = Bound::new(&server, "k", "a");
    server.restart();
    assert!(held.client.is_closed());
    let mut control = server.raw();
    // The watchdog went with the server, the hold has its lease.
    let found = control.only("k");
    assert_eq!((found.owner.as_str(), found.watchdog), ("a", None));
    let (client, id) = bind(&server, "RLOCK.RENEW k a 1200 WATCHDOG");
    pass(now_ms() + 4000);
    assert_eq!(control.watchdog("k"), Some(id));
    client.close();
    control.goes_free("k");
}

#[test]
fn it_binds_a_hold_again_after_a_failover() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut held = Bound::new(&master, "k", "a");
    assert_eq!(held.client.int("WAIT 1 10000"), 1);
    let mut copy = replica.raw();
    copy.ok("REPLICAOF NO ONE");
    let (client, id) = bind(&replica, "RLOCK.RENEW k a 1200 WATCHDOG");
    pass(now_ms() + 4000);
    assert_eq!(copy.watchdog("k"), Some(id));
    client.close();
    copy.goes_free("k");
    held.client.in_step();
}

#[test]
fn it_binds_readers_and_writers() {
    let server = Server::start();
    let mut control = server.raw();
    for (take, word) in [("READ", "read"), ("WRITE", "write")] {
        let mut taker = server.raw();
        taker.token(&format!("RLOCK.ACQUIRE k a 100000 {take}"));
        let (client, id) = bind(&server, &format!("RLOCK.RENEW k a 1200 {take} WATCHDOG"));
        pass(now_ms() + 4000);
        let hold = control.only("k");
        assert_eq!((hold.mode.as_str(), hold.watchdog), (word, Some(id)));
        client.close();
        control.goes_free("k");
        taker.in_step();
    }
}

#[test]
fn it_binds_in_a_transaction_too() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let mut client = server.raw();
    let id = client.client_id();
    let replies = client.ask_all(&["MULTI", "RLOCK.RENEW k a 100000 WATCHDOG", "EXEC"]);
    assert_eq!(list(replies[2].clone()), [Value::Int(1)]);
    assert_eq!(control.watchdog("k"), Some(id));
    client.close();
    control.goes_free("k");
}

#[test]
fn a_hold_taken_after_it_is_bound_only_if_it_says_so() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let (mut client, _) = bind(&server, "RLOCK.RENEW k a 100000 WATCHDOG");
    client.ask("RLOCK.ACQUIRE k a 100000");
    assert_eq!(control.held_by("k"), "a exclusive 2");
    client.close();
    control.goes_to("k", "a exclusive 1");
    pass(now_ms() + 200);
    assert_eq!(control.held_by("k"), "a exclusive 1");
}

#[test]
fn who_does_not_hold_it_binds_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    control.token("RLOCK.ACQUIRE doc a 100000 READ");
    let mut client = server.raw();
    for (request, expected) in [
        ("RLOCK.RENEW k b 1000 WATCHDOG", "NOTHELD"),
        ("RLOCK.RENEW free a 1000 WATCHDOG", "NOTHELD"),
        ("RLOCK.RENEW doc a 1000 WATCHDOG", "NOTHELD"),
        ("RLOCK.RENEW doc a 1000 WRITE WATCHDOG", "NOTHELD"),
        ("RLOCK.RENEW k a 0 WATCHDOG", "ERR"),
        ("RLOCK.RENEW k a 1000 WATCHDOG WATCHDOG", "ERR"),
    ] {
        assert_eq!(client.code(request), expected, "{request}");
    }
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
    client.close();
    pass(now_ms() + 200);
    assert_eq!(control.held_by("k"), "a exclusive 1");
    assert_eq!(control.held_by("doc"), "a read 1");
}

#[test]
fn it_binds_the_holds_of_both_modes_whichever_is_named() {
    let server = Server::start();
    let mut control = server.raw();
    for named in ["READ", "WRITE"] {
        let mut taker = server.raw();
        for mode in ["READ", "READ WATCHDOG", "WRITE"] {
            taker.token(&format!("RLOCK.ACQUIRE k a 100000 {mode}"));
        }
        let (client, id) = bind(&server, &format!("RLOCK.RENEW k a 1200 {named} WATCHDOG"));
        pass(now_ms() + 4000);
        let bonds: Vec<_> = control
            .info("k")
            .holders
            .into_iter()
            .map(|hold| (hold.mode, hold.holds, hold.watchdog))
            .collect();
        let expected = [("write", 1), ("read", 2)];
        let expected = expected.map(|(mode, holds)| (mode.to_owned(), holds, Some(id)));
        assert_eq!(bonds, expected, "{named}");
        taker.in_step();
        taker.close();
        pass(now_ms() + 200);
        assert_eq!(control.held_by("k"), "a write 1, a read 2", "{named}");
        client.close();
        control.goes_free("k");
    }
}
