//! A lock with permits is one hash, and nothing beside it: in `mode` the limits and how many
//! are out, and for each owner its permits and when they end.

use crate::support::{lease_from, Ask, Listener, Server};

#[test]
fn the_hash_says_all_of_it() {
    let server = Server::start();
    let mut client = server.raw();
    let (_, first) = lease_from(60_000, || {
        client.int("RLOCK.ACQUIRE k a 60000 LIMIT 7 PERMITS 2")
    });
    let ends = client.permits_end("k", "a");
    assert!(first.contains(&ends), "{ends}");
    assert_eq!(client.hash("k"), format!("a=2@{ends} mode=permits 7 7 2"));
    assert_eq!(client.deadline("k"), ends);

    let (_, second) = lease_from(90_000, || {
        client.int("RLOCK.ACQUIRE k b:1 90000 LIMIT 7 PERMITS 3")
    });
    let other = client.permits_end("k", "b:1");
    assert!(second.contains(&other), "{other}");
    let expected = format!("a=2@{ends} b:1=3@{other} mode=permits 7 7 5");
    assert_eq!(client.hash("k"), expected);
    assert_eq!(client.deadline("k"), other);

    // An owner has one lease for all that it has.
    let (_, third) = lease_from(70_000, || client.int("RLOCK.ACQUIRE k a 70000 LIMIT 7"));
    let ends = client.permits_end("k", "a");
    assert!(third.contains(&ends), "{ends}");
    client.int("RLOCK.LIMIT k 9");
    let expected = format!("a=3@{ends} b:1=3@{other} mode=permits 7 9 6");
    assert_eq!(client.hash("k"), expected);
    client.give_back("k", "a", 2);
    let expected = format!("a=1@{ends} b:1=3@{other} mode=permits 7 9 4");
    assert_eq!(client.hash("k"), expected);
    client.give_back("k", "a", 1);
    let expected = format!("b:1=3@{other} mode=permits 7 9 3");
    assert_eq!(client.hash("k"), expected);
    assert_eq!(client.int("DBSIZE"), 1);
    client.int("RLOCK.RELEASE k b:1 PERMITS ALL");
    client.nothing_left("k");
}

#[test]
fn names_and_owners_may_be_any_bytes() {
    let server = Server::start();
    let mut client = server.raw();
    let (key, owner): (&[u8], &[u8]) = (b"\0\xff k\r\n", b"\xff@1 permits\0");
    let words = |command: &'static str, rest: &[&'static str]| {
        let rest = rest.iter().map(|word| word.as_bytes().to_vec());
        let mut all = vec![command.as_bytes().to_vec(), key.to_vec(), owner.to_vec()];
        all.extend(rest);
        all
    };
    client.token(&words("RLOCK.ACQUIRE", &["60000", "LIMIT", "2"]));
    assert_eq!(client.int(&words("HEXISTS", &[])), 1);
    assert_eq!(client.int(&words("RLOCK.RENEW", &["90000", "PERMITS"])), 1);
    assert_eq!(client.int(&words("RLOCK.RELEASE", &["PERMITS"])), 0);
    assert_eq!(client.int("DBSIZE"), 0);
}

/// A client that waits by Redisson's rules is woken when the name is free, and not before.
#[test]
fn the_wake_up_message_comes_with_the_last_permit() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    let woken = || ("redisson_lock__channel:{k}".to_owned(), "0".to_owned());
    client.take_permits("k", "a", "LIMIT 3 PERMITS 2");
    client.take_permits("k", "b", "LIMIT 3");
    client.refused("RLOCK.ACQUIRE k c 1000 LIMIT 3");
    client.int("RLOCK.LIMIT k 5");
    client.int("RLOCK.RENEW k a 60000 PERMITS");
    client.give_back("k", "a", 1);
    client.give_back("k", "b", 1);
    assert_eq!(heard.messages(), []);
    client.give_back("k", "a", 1);
    assert_eq!(heard.messages(), [woken()]);

    client.take_permits("k", "a", "LIMIT 3 PERMITS 2");
    client.int("RLOCK.FORCE k");
    assert_eq!(heard.messages(), [woken()]);

    client.int("RLOCK.ACQUIRE k a 300 LIMIT 3 PERMITS 2");
    client.int("RLOCK.ACQUIRE k b 600 LIMIT 3");
    let both = client.permits_end("k", "b");
    assert_eq!(heard.until(&woken()), [woken()]);
    assert!(crate::support::now_ms() >= both);
    assert_eq!(client.int("EXISTS k"), 0);
    assert_eq!(heard.messages(), []);
}

#[test]
fn nobody_is_woken_by_what_goes_to_the_next() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.take_permits("k", "a", "LIMIT 1");
    let mut next = crate::support::Way::Block.permits(&server, "k", "b", "LIMIT 1");
    client.give_back("k", "a", 1);
    next.token();
    assert_eq!(heard.messages(), []);
}
