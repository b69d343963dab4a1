//! A hold with NOTIFY that ends other than by its owner is told of, with the reason, and
//! its connection stays open: with a plain lease and with WATCHDOG.

use crate::support::{
    lease_from, lease_key, pair, two_nodes, Ask, Move, RawClient, Server, Session, LONG,
};

/// With a plain lease and with a watchdog.
const KINDS: [&str; 2] = ["", "WATCHDOG"];

/// Each of these requests of somebody else's ends the hold, and its session is told why.
#[track_caller]
fn each_is_notified(mode: &str, ways: &[(&[&str], &str)]) {
    let server = Server::start();
    let mut control = server.raw();
    for (way, reason) in ways {
        for words in KINDS {
            println!("{way:?} {words}");
            control.ask_all(&["FLUSHALL", "SELECT 1", "FLUSHDB", "SELECT 0"]);
            let mut session = Session::new(&server);
            session.hold("k", "a", &format!("{mode} {words}"), "t");
            session.hold("else{k}", "a", words, "other");
            let field = format!("rlock_lost_{reason}");
            let before = control.counter(&field);
            control.succeed(way);
            let told = session.about("t");
            assert_eq!(told, format!("lost t {reason}"), "{way:?} {words}");
            match *reason {
                "flushed" => assert_eq!(session.next(), "lost other flushed"),
                _ if way[0].starts_with("SWAPDB") => {
                    assert_eq!(session.next(), "lost other moved");
                }
                _ => session.is_quiet(),
            }
            session.is_quiet();
            let both = *reason == "flushed" || way[0].starts_with("SWAPDB");
            let count = control.counter(&field) - before;
            assert_eq!(count, if both { 2 } else { 1 }, "{way:?} {words}");
        }
    }
    server.alive();
}

#[test]
fn a_plain_lock() {
    each_is_notified(
        "",
        &[
            (&["RLOCK.FORCE k"], "forced"),
            (&["DEL k"], "deleted"),
            (&["UNLINK k"], "deleted"),
            (&["HDEL k a"], "deleted"),
            (&["MULTI", "DEL k", "EXEC"], "deleted"),
            (&["FLUSHALL"], "flushed"),
            (&["FLUSHDB ASYNC"], "flushed"),
            (&["SET k v"], "overwritten"),
            (&["SET x v", "RENAME x k"], "overwritten"),
            (&["HSET x b 1", "RENAME x k"], "overwritten"),
            (&["SET x v", "COPY x k REPLACE"], "overwritten"),
            (&["RENAME k gone"], "moved"),
            (&["MOVE k 1"], "moved"),
            (&["SWAPDB 0 1"], "moved"),
        ],
    );
}

#[test]
fn a_read_lock() {
    each_is_notified(
        "READ",
        &[
            (&["RLOCK.FORCE k"], "forced"),
            (&["DEL k"], "deleted"),
            (&["FLUSHALL"], "flushed"),
            (&["SET k v"], "overwritten"),
            (&["RENAME k gone"], "moved"),
        ],
    );
}

#[test]
fn a_write_lock() {
    each_is_notified(
        "WRITE",
        &[
            (&["RLOCK.FORCE k"], "forced"),
            (&["DEL k"], "deleted"),
            (&["FLUSHALL"], "flushed"),
            (&["SET k v"], "overwritten"),
            (&["MOVE k 1"], "moved"),
        ],
    );
}

#[test]
fn a_lease_that_runs_out() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    for mode in ["", "READ", "WRITE"] {
        let request = format!("RLOCK.ACQUIRE k a 120 {mode}");
        let (_, ends) = lease_from(120, || session.ask(&request, "t"));
        assert_eq!(session.next(), "lost t expired", "{mode}");
        assert!(crate::support::now_ms() >= *ends.start(), "{mode}");
        control.is_free("k");
        session.is_quiet();
    }
    // One reader of two.
    control.take_read("k", "b");
    session.ask("RLOCK.ACQUIRE k a 60 READ", "t");
    assert_eq!(session.next(), "lost t expired");
    assert_eq!(control.held_by("k"), "b read 1");
    // Renewed by its owner it is not lost before the new end.
    session.ask("RLOCK.ACQUIRE plain a 2000", "t");
    let (_, ends) = lease_from(2500, || session.client.ask("RLOCK.RENEW plain a 2500"));
    assert_eq!(session.next(), "lost t expired");
    assert!(crate::support::now_ms() >= *ends.start());
}

#[test]
fn a_lock_that_is_evicted() {
    for words in KINDS {
        let server = Server::start_with(&["--maxmemory-policy", "volatile-ttl"]);
        let mut control = server.raw();
        let mut session = Session::new(&server);
        session.hold("k", "a", words, "t");
        control.ok("CONFIG SET maxmemory 1");
        control.ask("PING");
        assert_eq!(session.next(), "lost t evicted", "{words}");
        control.ok("CONFIG SET maxmemory 0");
        control.goes_free("k");
        session.is_quiet();
    }
}

#[test]
fn a_server_that_is_no_master_any_more() {
    for words in ["", "WATCHDOG", "READ", "READ WATCHDOG", "WRITE"] {
        let (server, replica) = pair(&[]);
        let mut session = Session::new(&server);
        session.hold("k", "a", words, "t");
        replica.raw().ok("REPLICAOF NO ONE");
        let line = format!("REPLICAOF 127.0.0.1 {}", replica.port());
        server.raw().ok(&line);
        assert_eq!(session.next(), "lost t demoted", "{words}");
        session.is_quiet();
    }
}

#[test]
fn a_slot_that_moves_to_another_node() {
    let (one, two) = two_nodes();
    for (key, words) in ["k", "l"].into_iter().zip(KINDS) {
        let mut session = Session::new(&one);
        session.hold(key, "a", words, "t");
        let mut slot = Move::of(key, &one, &two);
        slot.over(key);
        slot.arrive();
        assert_eq!(session.next(), "lost t moved", "{words}");
        assert_eq!(slot.there.hash(key), "a=1");
        session.is_quiet();
    }
}

#[test]
fn a_slot_that_moves_with_readers() {
    let (one, two) = two_nodes();
    for (key, words) in [("k", "READ"), ("l", "READ WATCHDOG")] {
        let mut session = Session::new(&one);
        session.hold(key, "a", words, "t");
        session.hold(key, "b", words, "u");
        let mut slot = Move::of(key, &one, &two);
        slot.over(key);
        for owner in ["a", "b"] {
            slot.over(&lease_key(key, owner, 1));
        }
        slot.arrive();
        let mut told = [session.next(), session.next()];
        told.sort();
        assert_eq!(told, ["lost t moved", "lost u moved"], "{words}");
        assert_eq!(slot.there.hash(key), "a=1 b=1 mode=read");
        session.is_quiet();
    }
}

#[test]
fn many_keys_of_one_request_are_each_notified_by_its_tag() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    session.ask(&format!("RLOCK.MACQUIRE 3 x y z a {LONG}"), "t");
    control.int("RLOCK.FORCE y");
    assert_eq!(session.next(), "lost t forced");
    control.int("DEL x z");
    assert_eq!([session.next(), session.next()], ["lost t deleted"; 2]);
    session.is_quiet();
}

#[test]
fn an_end_by_its_own_connection_is_not_notified() {
    let server = Server::start();
    let mut session = Session::new(&server);
    for words in KINDS {
        for release in [
            "RLOCK.RELEASE k a",
            "RLOCK.RELEASE k a ALL",
            "RLOCK.MRELEASE 1 k a",
        ] {
            session.hold("k", "a", words, "t");
            session.client.ask(release);
            session.is_quiet();
        }
        // A nested hold has a tag of its own.
        session.hold("k", "a", words, "t");
        session.hold("k", "a", words, "nested");
        assert_eq!(session.client.int("RLOCK.RELEASE k a"), 1);
        assert_eq!(session.client.int("RLOCK.RELEASE k a"), 0);
        session.is_quiet();
    }
}

#[test]
fn what_was_granted_after_a_wait_is_notified_too() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let told = |control: &mut RawClient, session: &mut Session, tag: &str| {
        session.granted(tag);
        control.int("RLOCK.FORCE k");
        assert_eq!(session.next(), format!("lost {tag} forced"));
    };
    control.take("k", "x");
    session.queue("k", "a", "t");
    control.release("k", "x");
    told(&mut control, &mut session, "t");
    // BLOCK with NOTIFY: the reply is the token, the loss a message.
    control.take("k", "x");
    let notify = session.notify("b");
    session
        .client
        .send(&format!("RLOCK.ACQUIRE k a {LONG} BLOCK 0 {notify}"));
    let version = server.version();
    if version.is_valkey() && version.at_least(8, 1) {
        // It lets no subscribed connection block: the request is a try.
        assert_eq!(session.client.read(), redis::Value::Nil);
        return;
    }
    control.has_waiters("k", 1);
    control.release("k", "x");
    crate::support::token(session.client.read());
    control.int("RLOCK.FORCE k");
    assert_eq!(session.next(), "lost b forced");
    session.is_quiet();
}
