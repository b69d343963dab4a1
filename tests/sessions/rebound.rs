//! ONCE that finds its owner's hold binds it anew, and whoever it was bound to is told: for
//! two processes with one owner name are one owner.

use redis::Value;

use crate::support::{error, eventually, Ask, Server, Session, LONG};

fn once(words: &str) -> String {
    format!("RLOCK.ACQUIRE k a {LONG} ONCE {words}")
}

#[test]
fn the_connection_that_it_was_bound_to_is_notified() {
    let server = Server::start();
    let mut control = server.raw();
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    let token = old.hold("k", "a", "WATCHDOG", "t1");
    assert_eq!(new.ask(&once("WATCHDOG"), "t2"), Value::Int(token));
    assert_eq!(old.next(), "lost t1 rebound");
    assert_eq!(control.counter("rlock_once_rebound"), 1);
    assert_eq!(control.watchdog("k"), Some(new.id));
    assert_eq!(control.counter("rlock_watchdog_holds"), 1);
    // The older one's end is nothing to it, nor what it says.
    old.is_quiet();
    old.client.close();
    control.int("RLOCK.FORCE k");
    assert_eq!(new.next(), "lost t2 forced");
    new.is_quiet();
}

#[test]
fn the_close_of_the_new_connection_ends_it() {
    let server = Server::start();
    let mut control = server.raw();
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    old.hold("k", "a", "WATCHDOG", "t1");
    new.ask(&once("WATCHDOG"), "t2");
    new.client.close();
    control.goes_free("k");
    assert_eq!(old.next(), "lost t1 rebound");
    old.is_quiet();
}

#[test]
fn by_another_tag_of_the_same_connection_it_is_notified_by_that_from_then_on() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let token = session.hold("k", "a", "", "t1");
    assert_eq!(session.ask(&once(""), "t2"), Value::Int(token));
    assert_eq!(session.next(), "lost t1 rebound");
    // t1 is free again.
    session.hold("other", "b", "", "t1");
    control.int("RLOCK.FORCE k");
    assert_eq!(session.next(), "lost t2 forced");
    session.is_quiet();
}

/// Each of the nested holds has a tag of its own until then.
#[test]
fn of_nested_holds_all_are_bound_and_the_connection_is_notified_and_not_closed() {
    for words in ["", "WATCHDOG"] {
        let server = Server::start();
        let mut control = server.raw();
        let (mut old, mut new) = (Session::new(&server), Session::new(&server));
        let token = old.hold("k", "a", words, "t1");
        old.hold("k", "a", words, "t2");
        new.hold("other", "b", "WATCHDOG", "x");
        assert_eq!(new.ask(&once("WATCHDOG"), "t3"), Value::Int(token));
        let mut told = [old.next(), old.next()];
        told.sort();
        assert_eq!(told, ["lost t1 rebound", "lost t2 rebound"]);
        control.int("RLOCK.FORCE k");
        assert_eq!(new.next(), "lost t3 forced");
        old.is_quiet();
        new.is_quiet();
        assert_eq!(control.watchdog("other"), Some(new.id));
    }
}

/// Whatever its nested holds were bound to: with ONCE they are one hold with one tag.
#[test]
fn nested_holds_of_any_kind_have_one_tag_from_then_on() {
    let kinds = [("", ""), ("WATCHDOG", ""), ("", "t"), ("WATCHDOG", "t")];
    let server = Server::start();
    let mut control = server.raw();
    for words in ["", "WATCHDOG"] {
        for (first, second) in kinds.iter().flat_map(|one| kinds.map(|other| (one, other))) {
            println!("{first:?} {second:?}, then ONCE {words}");
            let (mut old, mut new) = (Session::new(&server), Session::new(&server));
            for (nth, (watch, tag)) in [first, &second].into_iter().enumerate() {
                match *tag {
                    "" => old.client.ask(&format!("RLOCK.ACQUIRE k a {LONG} {watch}")),
                    tag => Value::Int(old.hold("k", "a", watch, &format!("{tag}{nth}"))),
                };
            }
            new.hold("other", "b", "WATCHDOG", "o");
            new.ask(&once(words), "t");
            // One of the two is left.
            assert_eq!(control.int("RLOCK.RELEASE k a"), 1);
            new.is_quiet();
            control.int("RLOCK.FORCE k");
            assert_eq!(new.next(), "lost t forced");
            new.is_quiet();
            assert_eq!(control.watchdog("other"), Some(new.id));
            new.client.close();
            control.goes_free("other");
        }
    }
}

#[test]
fn who_watches_it_and_is_notified_of_it_loses_both() {
    let server = Server::start();
    let mut control = server.raw();
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    let token = old.hold("k", "a", "WATCHDOG", "t");
    assert_eq!(new.ask(&once(""), "t"), Value::Int(token));
    assert_eq!(old.next(), "lost t rebound");
    assert_eq!(control.watchdog("k"), Some(new.id));
    control.int("RLOCK.FORCE k");
    assert_eq!(new.next(), "lost t forced");
    old.is_quiet();
    old.client.in_step();
}

#[test]
fn what_the_request_does_not_name_stays() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let mut other = server.raw();
    let token = session.hold("k", "a", "WATCHDOG", "t");
    // From elsewhere, with neither: nothing is bound anew, and nobody is told.
    assert_eq!(other.int(&once("")), token);
    assert_eq!(control.watchdog("k"), Some(session.id));
    session.is_quiet();
    assert_eq!(control.counter("rlock_once_rebound"), 0);
    // WATCHDOG alone: the watchdog goes to it, the messages stay where they were.
    assert_eq!(other.int(&once("WATCHDOG")), token);
    let id = other.client_id();
    assert_eq!(control.watchdog("k"), Some(id));
    assert_eq!(control.counter("rlock_once_rebound"), 1);
    control.int("RLOCK.FORCE k");
    let told = session.next();
    assert_eq!(told, "lost t forced");
}

#[test]
fn a_release_by_another_connection_of_the_owner_is_notified() {
    let server = Server::start();
    let mut session = Session::new(&server);
    let mut other = server.raw();
    for words in ["", "WATCHDOG"] {
        for release in [
            "RLOCK.RELEASE k a",
            "RLOCK.RELEASE k a ALL",
            "RLOCK.MRELEASE 1 k a",
        ] {
            println!("{release} {words}");
            session.hold("k", "a", words, "t");
            other.ask(release);
            assert_eq!(session.next(), "lost t released");
            session.is_quiet();
        }
    }
}

#[test]
fn a_longer_lease_is_the_lease_from_then_on_and_a_shorter_one_changes_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let token = session.hold("k", "a", "", "t");
    let ends = control.ends("k");
    let reply = session.ask("RLOCK.ACQUIRE k a 1000 ONCE", "t");
    assert_eq!((reply, control.ends("k")), (Value::Int(token), ends));
    let reply = session.ask("RLOCK.ACQUIRE k a 500000 ONCE", "t");
    assert_eq!(reply, Value::Int(token));
    assert!(control.ends("k") > ends + 300_000);
    session.is_quiet();
}

#[test]
fn each_mode_has_a_hold_of_its_own() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let request = |mode: &str| format!("RLOCK.ACQUIRE k a {LONG} ONCE {mode}");
    let writes = session.ask(&request("WRITE"), "w");
    let reads = session.ask(&request("READ"), "r");
    assert_eq!(session.ask(&request("WRITE"), "w"), writes);
    assert_eq!(session.ask(&request("READ"), "r"), reads);
    assert_eq!(control.held_by("k"), "a write 1, a read 1");
    session.is_quiet();
    session.client.ask("RLOCK.RELEASE k a WRITE");
    control.int("RLOCK.FORCE k");
    assert_eq!(session.next(), "lost r forced");
    session.is_quiet();
}

fn renew(words: &str) -> String {
    format!("RLOCK.RENEW k a {LONG} {words}")
}

/// A plain hold outlives its connection; the next one is told of its loss.
#[test]
fn a_renewal_binds_a_plain_hold_to_the_connection_that_comes_next() {
    let server = Server::start();
    let mut control = server.raw();
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    old.hold("k", "a", "", "t1");
    old.client.close();
    eventually("it is gone", || {
        !control
            .text("CLIENT LIST")
            .contains(&format!("id={} ", old.id))
    });
    assert_eq!(new.ask(&renew(""), "t2"), Value::Int(1));
    // With the tag that it has it may be renewed again.
    assert_eq!(new.ask(&renew(""), "t2"), Value::Int(1));
    new.is_quiet();
    control.int("RLOCK.FORCE k");
    assert_eq!(new.next(), "lost t2 forced");
    new.is_quiet();
}

#[test]
fn where_a_renewed_hold_was_bound_a_message_says_that_it_is_rebound() {
    for words in ["", "WATCHDOG"] {
        let server = Server::start();
        let mut control = server.raw();
        let (mut old, mut new) = (Session::new(&server), Session::new(&server));
        old.hold("k", "a", words, "t1");
        assert_eq!(new.ask(&renew(""), "t2"), Value::Int(1));
        assert_eq!(old.next(), "lost t1 rebound");
        // What the old connection watched it does not watch any more.
        let watchdog = (!words.is_empty()).then_some(new.id);
        assert_eq!(control.watchdog("k"), watchdog, "{words}");
        old.client.close();
        eventually("it is gone", || {
            !control
                .text("CLIENT LIST")
                .contains(&format!("id={} ", old.id))
        });
        new.is_quiet();
        control.int("RLOCK.FORCE k");
        assert_eq!(new.next(), "lost t2 forced");
    }
}

#[test]
fn a_renewal_with_watchdog_and_notify_binds_by_both() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.token(&format!("RLOCK.ACQUIRE k a {LONG}"));
    assert_eq!(session.ask(&renew("WATCHDOG"), "t"), Value::Int(1));
    assert_eq!(control.watchdog("k"), Some(session.id));
    control.int("DEL k");
    assert_eq!(session.next(), "lost t deleted");
    session.is_quiet();
}

#[test]
fn a_renewal_of_several_binds_each_by_one_tag() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.token(&format!("RLOCK.MACQUIRE 2 {{x}}:1 {{x}}:2 a {LONG}"));
    let words = format!("RLOCK.MRENEW 2 {{x}}:1 {{x}}:2 a {LONG}");
    assert_eq!(session.ask(&words, "t"), Value::Int(1));
    assert_eq!(session.ask(&words, "t"), Value::Int(1));
    control.int("RLOCK.FORCE {x}:1");
    assert_eq!(session.next(), "lost t forced");
    control.int("RLOCK.FORCE {x}:2");
    assert_eq!(session.next(), "lost t forced");
    session.is_quiet();
}

/// The loss of the others of its owner's holds is told where it was.
#[test]
fn a_renewal_binds_the_holds_in_its_mode_alone() {
    let server = Server::start();
    let mut control = server.raw();
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    old.hold("k", "a", "WRITE", "w");
    old.hold("k", "a", "READ", "r");
    assert_eq!(new.ask(&renew("READ"), "t"), Value::Int(1));
    assert_eq!(old.next(), "lost r rebound");
    old.is_quiet();
    control.int("RLOCK.FORCE k");
    assert_eq!(old.next(), "lost w forced");
    assert_eq!(new.next(), "lost t forced");
}

#[test]
fn a_renewal_that_cannot_be_notified_changes_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    session.hold("k", "a", "", "t");
    session.hold("other", "b", "", "u");
    let before = control.ask("PEXPIRETIME k");
    let mut refused = |request: String, tag: &str, part: &str| {
        let error = error(session.ask(&request, tag));
        assert!(error.contains(part), "{error}");
    };
    refused(
        "RLOCK.RENEW k a 1".to_owned(),
        "u",
        "the tag 'u' is that of another",
    );
    refused(
        "RLOCK.MRENEW 1 k a 1".to_owned(),
        "u",
        "the tag 'u' is that of another",
    );
    refused("RLOCK.RENEW k b 1".to_owned(), "v", "NOTHELD");
    let error = control.error("RLOCK.RENEW k a 1 NOTIFY nowhere v");
    assert!(error.contains("need RESP3"), "{error}");
    assert_eq!(control.ask("PEXPIRETIME k"), before);
    // The tag of a refused renewal is free.
    session.hold("third", "c", "", "v");
    control.int("RLOCK.FORCE k");
    assert_eq!(session.next(), "lost t forced");
    session.is_quiet();
}
