//! The limit comes with each request, and is one while anybody holds permits.

use crate::support::{both_ways, error, Ask, Server, Way};

#[test]
fn another_limit_is_refused_while_anybody_holds_permits() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("gpu", "a", "LIMIT 4");
    let before = (client.state(b"gpu"), client.changes());
    let expected = "WRONGLIMIT 'gpu' is held with limit 4: ask with that one, or use another name";
    for words in [
        "b 1000 LIMIT 3",
        "b 1000 LIMIT 5 PERMITS 5",
        "b 1000 LIMIT 3 BLOCK 0",
        "b 1000 LIMIT 3 ONCE",
        "a 1000 LIMIT 3",
        "a 1000 LIMIT 3 ONCE",
    ] {
        let line = client.error(&format!("RLOCK.ACQUIRE gpu {words}"));
        assert_eq!(line, expected, "{words}");
    }
    assert_eq!((client.state(b"gpu"), client.changes()), before);
    assert_eq!(client.give_back("gpu", "a", 1), 0);
    client.take_permits("gpu", "b", "LIMIT 3");
    assert_eq!(client.permits("gpu"), "b=1 mode=permits 3 3 1");
}

both_ways!(a_waiter_whose_limit_differs_ends_when_its_turn_comes);
fn a_waiter_whose_limit_differs_ends_when_its_turn_comes(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("k", "x");
    let mut first = by.permits(&server, "k", "a", "LIMIT 2");
    let mut other = by.permits(&server, "k", "b", "LIMIT 3");
    let mut second = by.permits(&server, "k", "c", "LIMIT 2");
    let mut third = by.permits(&server, "k", "d", "LIMIT 2");
    other.still_waits();
    client.release("k", "x");
    first.token();
    let line = error(other.end());
    let expected = "WRONGLIMIT 'k' is held with limit 2: ask with that one, or use another name";
    assert_eq!(line, expected);
    second.token();
    assert_eq!(client.waiters("k"), 1);
    assert_eq!(client.permits("k"), "a=1 c=1 mode=permits 2 2 2");
    client.give_back("k", "a", 1);
    third.token();
    other.client.in_step();
}

both_ways!(a_waiter_whose_turn_comes_when_nobody_holds_any_brings_its_own_limit);
fn a_waiter_whose_turn_comes_when_nobody_holds_any_brings_its_own_limit(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("k", "x");
    let mut two = by.permits(&server, "k", "a", "LIMIT 2 PERMITS 2");
    let mut plain = by.wait(&server, "k", "y");
    let mut three = by.permits(&server, "k", "b", "LIMIT 3");
    client.release("k", "x");
    two.token();
    // Behind the plain lock its limit is no matter yet.
    three.still_waits();
    client.give_back("k", "a", 2);
    plain.token();
    client.release("k", "y");
    three.token();
    assert_eq!(client.permits("k"), "b=1 mode=permits 3 3 1");
}
