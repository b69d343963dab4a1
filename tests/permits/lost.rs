//! NOTIFY: permits that end other than by their owner are told of, with the reason.

use crate::support::{now_ms, Ask, Bound, Server, Session, LONG};

/// Each of these requests of somebody else's ends it, and its session is told why.
#[test]
fn however_they_are_lost_it_is_notified_and_why() {
    let server = Server::start();
    let mut control = server.raw();
    for (way, reason) in [
        (["RLOCK.FORCE k"].as_slice(), "forced"),
        (&["DEL k"], "deleted"),
        (
            &[
                "HDEL k a",
                "RLOCK.INFO k",
                "RLOCK.RELEASE k a PERMITS IFHELD",
            ],
            "deleted",
        ),
        (&["FLUSHALL"], "flushed"),
        (&["SET k v"], "overwritten"),
        (&["SET x v", "RENAME x k"], "overwritten"),
        (
            &["HSET x b 1", "PEXPIRE x 60000", "RENAME x k"],
            "overwritten",
        ),
        (&["RENAME k gone"], "moved"),
        (&["MOVE k 1"], "moved"),
        (&["SWAPDB 0 1"], "moved"),
        (&["RLOCK.RELEASE k a PERMITS ALL"], "released"),
    ] {
        for words in ["", "WATCHDOG"] {
            println!("{way:?} {words}");
            control.ask_all(&["FLUSHALL", "SELECT 1", "FLUSHDB", "SELECT 0"]);
            let mut session = Session::new(&server);
            control.take_permits("k", "b", "LIMIT 4");
            session.hold("k", "a", &format!("LIMIT 4 PERMITS 2 {words}"), "t");
            control.succeed(way);
            assert_eq!(
                session.next(),
                format!("lost t {reason}"),
                "{way:?} {words}"
            );
            session.is_quiet();
        }
    }
    server.alive();
}

#[test]
fn a_lease_that_runs_out_is_notified_to_its_own_session() {
    let server = Server::start();
    let mut control = server.raw();
    let (mut one, mut other) = (Session::new(&server), Session::new(&server));
    other.hold("k", "b", "LIMIT 4", "stays");
    one.ask("RLOCK.ACQUIRE k a 1000 LIMIT 4 PERMITS 2", "t1");
    one.ask("RLOCK.ACQUIRE k a 500 LIMIT 4", "t2");
    let ends = control.permits_end("k", "a");
    let mut told = [one.next(), one.next()];
    assert!(now_ms() >= ends);
    told.sort();
    assert_eq!(told, ["lost t1 expired", "lost t2 expired"]);
    one.is_quiet();
    other.is_quiet();
    assert_eq!(control.permits("k"), "b=1 mode=permits 4 4 1");
    // With the last lease the key goes, and it is told all the same.
    one.ask("RLOCK.ACQUIRE other a 300 LIMIT 4 PERMITS 2", "t");
    assert_eq!(one.next(), "lost t expired");
    control.goes_free("other");
}

#[test]
fn what_another_connection_releases_is_notified_once_it_is_all_gone() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    session.hold("k", "a", "LIMIT 4 PERMITS 3", "t");
    assert_eq!(control.give_back("k", "a", 1), 2);
    session.is_quiet();
    assert_eq!(control.give_back("k", "a", 2), 0);
    assert_eq!(session.next(), "lost t released");
    // Its own are no loss.
    session.hold("k", "a", "LIMIT 4 PERMITS 3", "t");
    assert_eq!(session.client.give_back("k", "a", 2), 1);
    assert_eq!(session.client.give_back("k", "a", 1), 0);
    session.is_quiet();
    // The tag is free again.
    session.hold("k", "a", "LIMIT 4", "t");
}

#[test]
fn once_on_another_connection_is_notified_as_rebound() {
    let server = Server::start();
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    let token = old.hold("k", "a", "LIMIT 4 PERMITS 2 WATCHDOG", "t");
    let again = new.hold("k", "a", "LIMIT 4 PERMITS 2 WATCHDOG ONCE", "u");
    assert_eq!(token, again);
    assert_eq!(old.next(), "lost t rebound");
    old.client.close();
    new.is_quiet();
    assert_eq!(server.raw().permits("k"), "a=2 mode=permits 4 4 2");
}

/// Without NOTIFY the connection is closed that watched it: of one owner, not of others.
#[test]
fn without_it_the_connection_that_watched_is_closed() {
    let server = Server::start();
    let mut control = server.raw();
    for way in ["RLOCK.FORCE k", "DEL k", "SET k v"] {
        control.ok("FLUSHALL");
        let mut one = Bound::with(&server, &format!("k a {LONG} LIMIT 4 PERMITS 2"));
        let mut other = Bound::with(&server, &format!("k b {LONG} LIMIT 4"));
        let mut plain = server.raw();
        plain.take_permits("k", "c", "LIMIT 4");
        control.succeed(&[way]);
        assert!(one.client.is_closed() && other.client.is_closed(), "{way}");
        plain.in_step();
    }
    control.ok("FLUSHALL");
    let mut one = Bound::with(&server, &format!("k a {LONG} LIMIT 4 PERMITS 2"));
    let mut other = Bound::with(&server, &format!("k b {LONG} LIMIT 4"));
    control.int("HDEL k a");
    control.refused("RLOCK.ACQUIRE k z 1 LIMIT 4 PERMITS 4");
    assert!(one.client.is_closed());
    other.client.in_step();
    assert_eq!(control.watchdog("k"), Some(other.id));
}
