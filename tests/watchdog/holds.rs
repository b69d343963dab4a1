//! One owner's holds on several connections: whose is released, and what ends when
//! one of the connections does.

use redis::Value;

use crate::support::{code, list, now_ms, pass, token, Ask, Bound, RawClient, Server, Waiter};

const ONE: &str = "a exclusive 1";
const TWO: &str = "a exclusive 2";

#[track_caller]
fn release(client: &mut RawClient, left: i64) {
    assert_eq!(client.int("RLOCK.RELEASE k a"), left);
}

#[track_caller]
fn nest(client: &mut RawClient, keywords: &str) {
    client.token(&format!("RLOCK.ACQUIRE k a 100000 {keywords}"));
}

#[test]
fn each_connection_releases_the_hold_that_it_took() {
    let server = Server::start();
    let mut control = server.raw();
    let mut watched = Bound::new(&server, "k", "a");
    let mut plain = server.raw();
    nest(&mut plain, "");
    assert_eq!(control.held_by("k"), TWO);
    // Its own, which is the older one.
    release(&mut watched.client, 1);
    assert_eq!(control.watchdog("k"), None);
    watched.client.close();
    pass(now_ms() + 300);
    assert_eq!(control.held_by("k"), ONE);
    release(&mut plain, 0);

    let watched = Bound::new(&server, "k", "a");
    nest(&mut plain, "");
    release(&mut plain, 1);
    assert_eq!(control.watchdog("k"), Some(watched.id));
    watched.client.close();
    control.goes_free("k");
}

#[test]
fn the_newest_of_its_own_is_released_first() {
    let server = Server::start();
    let mut control = server.raw();
    for (first, second) in [("", "WATCHDOG"), ("WATCHDOG", "")] {
        let mut client = server.raw();
        nest(&mut client, first);
        nest(&mut client, second);
        // A newer one of another connection is not its own.
        let mut other = server.raw();
        nest(&mut other, "");
        release(&mut client, 2);
        let bound = control.watchdog("k").is_some();
        assert_eq!(bound, first == "WATCHDOG", "{first} then {second}");
        client.close();
        let left = if bound { ONE } else { TWO };
        control.goes_to("k", left);
        pass(now_ms() + 100);
        assert_eq!(control.held_by("k"), left);
        control.ask("RLOCK.RELEASE k a ALL");
    }
}

#[test]
fn who_took_none_releases_the_newest_without_watchdog() {
    let server = Server::start();
    let mut control = server.raw();
    let mut plain = server.raw();
    nest(&mut plain, "");
    let watched = Bound::new(&server, "k", "a");
    let mut stranger = server.raw();
    release(&mut stranger, 1);
    assert_eq!(control.watchdog("k"), Some(watched.id));
    watched.client.close();
    control.goes_free("k");
}

#[test]
fn who_took_none_releases_the_newest_where_all_are_watched() {
    let server = Server::start();
    let mut control = server.raw();
    let older = Bound::new(&server, "k", "a");
    let mut newer = Bound::new(&server, "k", "a");
    let mut stranger = server.raw();
    release(&mut stranger, 1);
    assert_eq!(control.watchdog("k"), Some(older.id));
    // Released by the owner: no reason to close.
    newer.client.in_step();
    newer.client.close();
    pass(now_ms() + 300);
    assert_eq!(control.held_by("k"), ONE);
    older.client.close();
    control.goes_free("k");
}

#[test]
fn holds_that_were_found_are_nobodys_and_unwatched() {
    let server = Server::start();
    let mut control = server.raw();
    for by_stranger in [true, false] {
        control.ask_all(&["HSET k a 1", "PEXPIRE k 100000"]);
        let mut watched = Bound::new(&server, "k", "a");
        assert_eq!(control.held_by("k"), TWO);
        if by_stranger {
            release(&mut control, 1);
            assert_eq!(control.watchdog("k"), Some(watched.id));
            watched.client.close();
            control.goes_free("k");
        } else {
            release(&mut watched.client, 1);
            assert_eq!(control.watchdog("k"), None);
            // It took none of what is left, and may release it all the same.
            release(&mut watched.client, 0);
        }
    }
}

#[test]
fn a_close_ends_its_watchdog_holds_and_leaves_its_plain_ones() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    for keywords in ["", "WATCHDOG", "", "WATCHDOG", "WATCHDOG"] {
        nest(&mut client, keywords);
    }
    assert_eq!(control.held_by("k"), "a exclusive 5");
    assert_eq!(control.counter("rlock_watchdog_holds"), 3);
    client.close();
    control.goes_to("k", TWO);
    assert_eq!(control.watchdog("k"), None);
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
}

#[test]
fn all_releases_what_every_connection_took() {
    let server = Server::start();
    let mut control = server.raw();
    let mut one = Bound::new(&server, "k", "a");
    let mut two = Bound::new(&server, "k", "a");
    let mut waiter = Waiter::new(&server, "k", "b");
    assert_eq!(one.client.int("RLOCK.RELEASE k a ALL"), 0);
    waiter.token();
    pass(now_ms() + 100);
    one.client.in_step();
    two.client.in_step();
    one.client.close();
    two.client.close();
    pass(now_ms() + 300);
    assert_eq!(control.held_by("k"), "b exclusive 1");
}

#[test]
fn a_watchdog_in_a_transaction_belongs_to_its_connection() {
    let server = Server::start();
    let mut control = server.raw();
    for request in [
        "RLOCK.ACQUIRE k a 300 WATCHDOG",
        "RLOCK.ACQUIRE k a 300 WATCHDOG BLOCK 0",
        "RLOCK.MACQUIRE 1 k a 300 WATCHDOG",
    ] {
        let mut client = server.raw();
        let id = client.client_id();
        let replies = client.ask_all(&["MULTI", request, "EXEC"]);
        let granted = token(list(replies[2].clone()).remove(0));
        pass(now_ms() + 1200);
        let hold = control.only("k");
        assert_eq!((hold.token, hold.watchdog), (Some(granted), Some(id)));
        // A second one that waits in vain: a transaction never waits.
        let replies = control.ask_all(&["MULTI", "RLOCK.ACQUIRE k b 9 WATCHDOG BLOCK 0", "EXEC"]);
        assert_eq!(replies[2], Value::Array(vec![Value::Nil]));
        client.close();
        control.goes_free("k");
    }
}

#[test]
fn reset_hello_and_select_release_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    for db in [0, 1] {
        control.ask(&format!("SELECT {db}"));
        let mut client = server.raw();
        client.ask(&format!("SELECT {db}"));
        let id = client.client_id();
        let granted = client.token("RLOCK.ACQUIRE k a 400 WATCHDOG");
        for request in ["SELECT 2", "RESET", "HELLO 3", "HELLO 2", "RESET"] {
            let reply = client.ask(request);
            assert!(!matches!(reply, Value::ServerError(_)), "{reply:?}");
            let hold = control.only("k");
            assert_eq!((hold.token, hold.watchdog), (Some(granted), Some(id)));
        }
        pass(now_ms() + 1500);
        assert_eq!(control.only("k").token, Some(granted));
        client.close();
        control.goes_free("k");
    }
}

#[test]
fn the_connections_own_id_goes_well_with_it() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    let id = client.client_id();
    client.token("RLOCK.ACQUIRE k * 300 WATCHDOG");
    let again = client.ask("RLOCK.ACQUIRE k * 300 WATCHDOG");
    assert_eq!(code(&again), "HELD");
    pass(now_ms() + 1000);
    let hold = control.only("k");
    assert!(hold.owner.ends_with(&format!(":{id}")), "{hold:?}");
    assert_eq!((hold.holds, hold.watchdog), (1, Some(id)));
    client.close();
    control.goes_free("k");
}

#[test]
fn a_refused_try_binds_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let mut client = server.raw();
    assert!(client.refused("RLOCK.ACQUIRE k b 1000 WATCHDOG"));
    assert!(client.refused("RLOCK.ACQUIRE k b 1000 WATCHDOG BLOCK 20"));
    assert_eq!(control.watchdog("k"), None);
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
    client.close();
    pass(now_ms() + 200);
    assert_eq!(control.int("RLOCK.RELEASE k a"), 0);
}

#[test]
fn who_took_none_releases_the_newest_of_those_without_watchdog() {
    let server = Server::start();
    let mut control = server.raw();
    let mut watched = Bound::new(&server, "k", "a");
    nest(&mut watched.client, "");
    let mut plain = server.raw();
    nest(&mut plain, "");
    let mut stranger = server.raw();
    release(&mut stranger, 2);
    // That was the one of `plain`: this one still has both of its own.
    release(&mut watched.client, 1);
    assert_eq!(control.watchdog("k"), Some(watched.id));
    watched.client.close();
    control.goes_free("k");
}
