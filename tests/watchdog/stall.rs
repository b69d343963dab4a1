//! The server itself stands still for longer than the lease: a hold that nobody
//! came to meanwhile is written anew, with the token it had.

use redis::Value;

use crate::support::{now_ms, pass, Ask, Bound, RawClient, Server};

const STALL: i64 = 1500;

fn stop(server: &Server, _: &mut RawClient) {
    server.pause_process();
    pass(now_ms() + STALL);
    server.resume_process();
}

fn sleep(_: &Server, control: &mut RawClient) {
    let seconds = STALL as f64 / 1000.0;
    control.ok(&format!("DEBUG SLEEP {seconds}"));
}

/// Ways to stall.
const STALLS: [fn(&Server, &mut RawClient); 2] = [stop, sleep];

/// Held again as soon as the server has looked, as before, and renewed on. Whoever
/// only reads may come first, and sees the lease that is over.
#[track_caller]
fn as_before(control: &mut RawClient, held: &mut Bound, holds: &str) {
    control.goes_to("k", holds);
    for _ in 0..2 {
        let hold = control.only("k");
        assert_eq!(hold.token, Some(held.token));
        assert_eq!(hold.watchdog, Some(held.id));
        held.client.in_step();
        pass(now_ms() + 900);
    }
    control.goes_to("k", holds);
}

#[test]
fn a_hold_outlives_a_stall_longer_than_its_lease() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for stall in STALLS {
        let mut held = Bound::with(&server, "k a 300");
        stall(&server, &mut control);
        as_before(&mut control, &mut held, "a exclusive 1");
        assert_eq!(held.client.int("RLOCK.RELEASE k a"), 0);
        held.client.in_step();
    }
}

#[test]
fn nested_holds_outlive_it_all_of_them() {
    let server = Server::start();
    let mut control = server.raw();
    for stall in STALLS {
        let mut held = Bound::with(&server, "k a 300");
        held.client.ask("RLOCK.ACQUIRE k a 200");
        held.client.ask("RLOCK.ACQUIRE k a 100 WATCHDOG");
        stall(&server, &mut control);
        as_before(&mut control, &mut held, "a exclusive 3");
        assert_eq!(held.client.int("RLOCK.RELEASE k a"), 2);
        assert_eq!(held.client.int("RLOCK.RELEASE k a ALL"), 0);
    }
}

#[test]
fn readers_and_writers_outlive_it() {
    let server = Server::start();
    let mut control = server.raw();
    for stall in STALLS {
        for (mode, holds) in [("READ", "a read 1"), ("WRITE", "a write 1")] {
            let mut held = Bound::with(&server, &format!("k a 300 {mode}"));
            stall(&server, &mut control);
            as_before(&mut control, &mut held, holds);
            let release = format!("RLOCK.RELEASE k a {mode}");
            assert_eq!(held.client.int(&release), 0);
        }
    }
}

#[test]
fn two_readers_outlive_it_side_by_side() {
    let server = Server::start();
    let mut control = server.raw();
    let mut one = Bound::with(&server, "k a 300 READ");
    let mut two = Bound::with(&server, "k b 300 READ");
    for stall in STALLS {
        stall(&server, &mut control);
        control.goes_to("k", "a read 1, b read 1");
        let mut holds = control.info("k").holders;
        holds.sort_by(|x, y| x.owner.cmp(&y.owner));
        let ids: Vec<_> = holds.iter().map(|hold| hold.watchdog).collect();
        assert_eq!(ids, [Some(one.id), Some(two.id)]);
        let tokens: Vec<_> = holds.iter().map(|hold| hold.token).collect();
        assert_eq!(tokens, [Some(one.token), Some(two.token)]);
    }
    one.client.in_step();
    two.client.in_step();
}

#[test]
fn after_a_stall_with_a_request_in_it_open_still_means_held() {
    // Whoever comes first when the server wakes, renewal or request: either the
    // holder has its lock as before, or it is closed.
    let server = Server::start();
    let mut control = server.raw();
    for request in [
        "RLOCK.ACQUIRE k b 100000",
        "RLOCK.ACQUIRE k b 100000 BLOCK 100",
        "SET k v",
        "EXISTS k",
        "DEL k",
        "KEYS *",
    ] {
        let mut held = Bound::with(&server, "k a 300");
        let mut other = server.raw();
        other.ask("PING");
        server.pause_process();
        other.send(request);
        pass(now_ms() + STALL);
        server.resume_process();
        let reply = other.read();
        if held.client.is_closed_within(500) {
            let left = control.ask("HGET k a");
            assert!(
                !matches!(left, Value::BulkString(_)),
                "{request}: {reply:?}"
            );
        } else {
            control.goes_to("k", "a exclusive 1");
            let hold = control.only("k");
            assert_eq!((hold.owner.as_str(), hold.token), ("a", Some(held.token)));
            assert_eq!(hold.watchdog, Some(held.id), "{request}: {reply:?}");
        }
        control.ask("FLUSHALL");
    }
    server.alive();
}

#[test]
fn a_connection_that_closes_during_the_stall_has_let_go_after_it() {
    let server = Server::start();
    let mut control = server.raw();
    let held = Bound::with(&server, "k a 300");
    let gone = Bound::with(&server, "other a 300");
    assert_eq!(control.watchdog("other"), Some(gone.id));
    server.pause_process();
    gone.client.close();
    pass(now_ms() + STALL);
    server.resume_process();
    control.goes_free("other");
    control.goes_to("k", "a exclusive 1");
    assert_eq!(control.only("k").token, Some(held.token));
}

#[test]
fn a_hold_that_somebody_took_during_the_stall_is_lost_and_its_connection_closed() {
    let server = Server::start();
    let mut control = server.raw();
    let sleep = format!("DEBUG SLEEP {}", STALL as f64 / 1000.0);
    for (kind, takes) in [
        ("", "HSETNX k z 1"),
        ("READ", "HSETNX k z 1"),
        ("WRITE", "SET k v NX"),
    ] {
        let mut held = Bound::with(&server, &format!("k a 300 {kind}"));
        // In one write: nothing of the server's own comes between the two.
        let replies = control.ask_all(&[sleep.as_str(), takes, "PEXPIRE k 100000"]);
        assert_eq!(replies[2], Value::Int(1), "{takes}");
        assert!(!matches!(replies[1], Value::Nil | Value::Int(0)), "{takes}");
        assert!(held.client.is_closed(), "'{kind}', {takes}");
        // What came between is left as it is.
        assert_eq!(control.int("EXISTS k"), 1);
        assert!(!matches!(control.ask("HGET k a"), Value::BulkString(_)));
        control.ask("FLUSHALL");
    }
    server.alive();
}
