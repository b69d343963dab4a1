//! Permits are a third kind of lock, beside plain ones and those that are read and written:
//! no two of them are held under one name at a time.

use crate::support::{both_ways, Ask, Server, Way, LONG};

/// The kinds, how each is released, and how an error calls it: held, and asked for.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("", "", "as a plain lock", "a plain lock"),
    ("READ", "READ", "for READ", "READ and WRITE"),
    ("WRITE", "WRITE", "for WRITE", "READ and WRITE"),
    ("LIMIT 2", "PERMITS", "by permits", "permits"),
];

/// One lock can be held in both ways.
fn mixes(one: &str, other: &str) -> bool {
    let is_read_write = |words: &str| ["READ", "WRITE"].contains(&words);
    one == other || is_read_write(one) && is_read_write(other)
}

both_ways!(an_owner_that_holds_the_one_kind_gets_no_other);
fn an_owner_that_holds_the_one_kind_gets_no_other(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for (held, release, how, _) in KINDS {
        client.token(&format!("RLOCK.ACQUIRE k a {LONG} {held}"));
        let before = client.state(b"k");
        for (asked, .., what) in KINDS.iter().filter(|kind| !mixes(kind.0, held)) {
            let expected = format!(
                "WRONGMODE owner 'a' holds 'k' {how}, which does not mix with {what}: release it \
                 first, or use another name"
            );
            let line = client.error(&format!("RLOCK.ACQUIRE k a {LONG} {asked}"));
            assert_eq!(line, expected);
            let mut waiter = by.with(&server, &format!("k a {LONG} {asked} BLOCK 0"));
            assert_eq!(crate::support::error(waiter.end()), expected);
            let once = format!("RLOCK.ACQUIRE k a {LONG} {asked} ONCE");
            assert_eq!(client.error(&once), expected);
        }
        assert_eq!(client.state(b"k"), before);
        assert_eq!(client.int(&format!("RLOCK.RELEASE k a {release}")), 0);
    }
    client.nothing_left("k");
}

both_ways!(another_owner_waits_until_the_other_kind_is_free);
fn another_owner_waits_until_the_other_kind_is_free(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for (held, release, ..) in KINDS {
        for (asked, its, ..) in KINDS.iter().filter(|kind| !mixes(kind.0, held)) {
            client.token(&format!("RLOCK.ACQUIRE k a {LONG} {held}"));
            let before = client.state(b"k");
            assert!(client.refused(&format!("RLOCK.ACQUIRE k b {LONG} {asked}")));
            let mut waiter = by.with(&server, &format!("k b {LONG} {asked} BLOCK 0"));
            waiter.still_waits();
            assert_eq!(client.state(b"k"), before);
            assert_eq!(client.int(&format!("RLOCK.RELEASE k a {release}")), 0);
            waiter.token();
            assert_eq!(client.int(&format!("RLOCK.RELEASE k b {its}")), 0);
            client.nothing_left("k");
        }
    }
}

both_ways!(all_kinds_are_served_in_the_order_of_arrival_and_never_mixed);
fn all_kinds_are_served_in_the_order_of_arrival_and_never_mixed(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("k", "x");
    let wait =
        |owner: &str, words: &str| by.with(&server, &format!("k {owner} {LONG} {words} BLOCK 0"));
    let mut p1 = wait("p1", "LIMIT 2");
    let mut read = wait("r", "READ");
    let mut p2 = wait("p2", "LIMIT 2");
    let mut plain = wait("e", "");
    let mut p3 = wait("p3", "LIMIT 3 PERMITS 2");
    let mut p4 = wait("p4", "LIMIT 3");
    let mut write = wait("w", "WRITE");
    client.release("k", "x");
    p1.token();
    // One is free still, and the reader stands before the next who wants it.
    assert_eq!(client.permits("k"), "mode=permits 2 2 1 p1=1");
    assert_eq!(client.waiters("k"), 6);
    assert!(client.refused("RLOCK.ACQUIRE k y 1000 LIMIT 2"));
    assert_eq!(client.give_back("k", "p1", 1), 0);
    read.token();
    assert_eq!(client.hash("k"), "mode=read r=1");
    assert_eq!(client.waiters("k"), 5);
    client.int("RLOCK.RELEASE k r READ");
    p2.token();
    assert_eq!(client.permits("k"), "mode=permits 2 2 1 p2=1");
    assert_eq!(client.give_back("k", "p2", 1), 0);
    plain.token();
    assert_eq!(client.hash("k"), "e=1");
    client.release("k", "e");
    p3.token();
    p4.token();
    assert_eq!(client.permits("k"), "mode=permits 3 3 3 p3=2 p4=1");
    client.give_back("k", "p3", 2);
    write.still_waits();
    client.give_back("k", "p4", 1);
    write.token();
    assert_eq!(client.hash("k"), "mode=write w:write=1");
    client.int("RLOCK.RELEASE k w WRITE");
    client.nothing_left("k");
}
