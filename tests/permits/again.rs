//! ONCE: a request that is retried has the hold under way, or the place of the one that
//! waits.

use crate::support::{both_ways, error, Ask, Server, Way, LONG};

const SUPERSEDED: &str = "SUPERSEDED a newer request of the same owner took the place";

fn once(owner: &str, share: &str) -> String {
    format!("RLOCK.ACQUIRE k {owner} {LONG} {share} ONCE")
}

#[test]
fn the_same_number_gets_the_token_again() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.token("RLOCK.ACQUIRE k a 50000 LIMIT 4 PERMITS 3 ONCE");
    let ends = client.permits_end("k", "a");
    for (lease, longer) in [(1000, false), (90_000, true), (200, false)] {
        let before = client.permits_end("k", "a");
        let line = format!("RLOCK.ACQUIRE k a {lease} LIMIT 4 PERMITS 3 ONCE");
        assert_eq!(client.token(&line), token);
        assert_eq!(client.permits_end("k", "a") > before, longer, "{lease}");
    }
    assert!(client.permits_end("k", "a") > ends + 30_000);
    assert_eq!(client.deadline("k"), client.permits_end("k", "a"));
    assert_eq!(client.permits("k"), "a=3 mode=permits 4 4 3");
    // None of them is free: nobody has to wait for what it has.
    client.take_permits("k", "b", "LIMIT 4");
    assert_eq!(client.token(&once("a", "LIMIT 4 PERMITS 3")), token);
    assert_eq!(client.give_back("k", "a", 3), 0);
    assert!(client.token(&once("a", "LIMIT 4 PERMITS 3")) > token);
}

both_ways!(another_number_is_an_error_and_changes_nothing);
fn another_number_is_an_error_and_changes_nothing(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.token(&once("a", "LIMIT 4 PERMITS 2"));
    let before = client.state(b"k");
    for (count, line) in [1, 3, 4].map(|n| (n, once("a", &format!("LIMIT 4 PERMITS {n}")))) {
        let expected = "HELD owner 'a' already holds another number of permits of 'k', 2: \
                        RELEASE them first, or leave ONCE away";
        assert_eq!(client.error(&line), expected, "{count}");
        let mut waiter = by.request(&server, &format!("{line} BLOCK 0"));
        assert_eq!(error(waiter.end()), expected, "{count}");
    }
    assert_eq!(client.state(b"k"), before);
}

#[test]
fn a_connection_that_is_its_own_owner_has_no_second_hold() {
    let server = Server::start();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k * 90000 LIMIT 4 PERMITS 2");
    for words in ["", "PERMITS 2", "PERMITS 2 ONCE"] {
        let line = client.error(&format!("RLOCK.ACQUIRE k * 90000 LIMIT 4 {words}"));
        assert!(line.starts_with("HELD owner "), "{line}");
    }
    assert_eq!(client.int("RLOCK.RELEASE k * PERMITS 2"), 0);
    client.nothing_left("k");
}

both_ways!(a_request_that_waits_gives_its_place_to_the_same_one);
fn a_request_that_waits_gives_its_place_to_the_same_one(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "x", "LIMIT 4 PERMITS 4");
    let line = format!("{} BLOCK 0", once("a", "LIMIT 4 PERMITS 2"));
    let mut old = by.request(&server, &line);
    let mut behind = by.permits(&server, "k", "b", "LIMIT 4 PERMITS 3");
    let mut new = by.request(&server, &line);
    assert_eq!(error(old.end()), SUPERSEDED);
    assert_eq!(client.waiters("k"), 2);
    client.give_back("k", "x", 2);
    let token = new.token();
    behind.still_waits();
    assert_eq!(client.permits("k"), "a=2 mode=permits 4 4 4 x=2");
    // Said once more after the grant it is the same.
    assert_eq!(client.token(&once("a", "LIMIT 4 PERMITS 2")), token);
    client.give_back("k", "x", 2);
    behind.still_waits();
    client.give_back("k", "a", 2);
    behind.token();
    old.client.in_step();
}

both_ways!(a_request_for_another_share_or_in_another_mode_takes_no_place);
fn a_request_for_another_share_or_in_another_mode_takes_no_place(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("k", "x");
    let shares = [
        "LIMIT 4 PERMITS 2",
        "LIMIT 4 PERMITS 3",
        "LIMIT 5 PERMITS 2",
        "LIMIT 4",
        "",
    ];
    let mut waiters =
        shares.map(|share| by.request(&server, &format!("{} BLOCK 0", once("a", share))));
    assert_eq!(client.waiters("k"), 5);
    client.release("k", "x");
    waiters[0].token();
    // The rest is judged by what the owner has come to hold.
    let code = |at: usize, waiters: &mut [crate::support::Waiter]| {
        let line = error(waiters[at].end());
        line.split(' ').next().map(str::to_owned)
    };
    for (at, expected) in [
        (1, "HELD"),
        (2, "WRONGLIMIT"),
        (3, "HELD"),
        (4, "WRONGMODE"),
    ] {
        let found = code(at, &mut waiters);
        assert_eq!(found.as_deref(), Some(expected), "{}", shares[at]);
    }
    assert_eq!(client.permits("k"), "a=2 mode=permits 4 4 2");
    assert_eq!(client.waiters("k"), 0);
}
