//! Waits for permits that could never end are refused, as far as one lock alone tells.

use crate::support::{both_ways, error, Ask, Server, Way, LONG};

both_ways!(two_that_hold_half_each_and_want_the_other_half);
fn two_that_hold_half_each_and_want_the_other_half(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["a", "b"] {
        client.take_permits("k", owner, "LIMIT 4 PERMITS 2");
    }
    let before = client.state(b"k");
    let mut first = by.permits(&server, "k", "a", "LIMIT 4 PERMITS 2");
    first.still_waits();
    let mut second = by.permits(&server, "k", "b", "LIMIT 4 PERMITS 2");
    let line = error(second.end());
    assert_eq!(line, "DEADLOCK b waits for k (a), a waits for k (b)");
    second.client.in_step();
    assert_eq!(client.state(b"k"), before);
    assert_eq!(client.waiters("k"), 1);
    assert_eq!(client.counter("rlock_deadlocks_refused"), 1);
    // It gives back what it has, and the other goes on.
    assert_eq!(client.give_back("k", "b", 2), 0);
    first.token();
    assert_eq!(client.permits("k"), "a=4 mode=permits 4 4 4");
}

both_ways!(one_that_wants_more_than_can_ever_be_free_beside_its_own);
fn one_that_wants_more_than_can_ever_be_free_beside_its_own(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 4 PERMITS 3");
    client.take_permits("k", "b", "LIMIT 4");
    let mut more = by.permits(&server, "k", "a", "LIMIT 4 PERMITS 2");
    let line = error(more.end());
    assert!(line.starts_with("DEADLOCK a waits for k ("), "{line}");
    let mut fits = by.permits(&server, "k", "a", "LIMIT 4");
    fits.still_waits();
    client.give_back("k", "b", 1);
    fits.token();
    // A limit of one is a mutex that does not nest.
    client.take_permits("one", "a", "LIMIT 1");
    let mut again = by.permits(&server, "one", "a", "LIMIT 1");
    assert!(error(again.end()).starts_with("DEADLOCK "));
}

both_ways!(it_shows_only_when_the_first_in_the_queue_has_left);
fn it_shows_only_when_the_first_in_the_queue_has_left(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 4 PERMITS 2");
    client.take_permits("k", "c", "LIMIT 4 PERMITS 2");
    let mut first = by.permits(&server, "k", "x", "LIMIT 4");
    let mut all = by.permits(&server, "k", "h", "LIMIT 4 PERMITS 4");
    let mut hoards = by.permits(&server, "k", "b", "LIMIT 4");
    for waiter in [&mut first, &mut all, &mut hoards] {
        waiter.still_waits();
    }
    client.give_back("k", "c", 1);
    first.token();
    let line = error(hoards.end());
    assert_eq!(line, "DEADLOCK b waits for k (h), h waits for k (b)");
    all.still_waits();
    client.give_back("k", "b", 2);
    client.give_back("k", "c", 1);
    client.give_back("k", "x", 1);
    all.token();
}

both_ways!(a_lower_limit_can_bring_it_about);
fn a_lower_limit_can_bring_it_about(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 6 PERMITS 2");
    client.take_permits("k", "b", "LIMIT 6 PERMITS 2");
    client.take_permits("k", "c", "LIMIT 6 PERMITS 2");
    let mut more = by.permits(&server, "k", "a", "LIMIT 6 PERMITS 2");
    more.still_waits();
    client.int("RLOCK.LIMIT k 3");
    let line = error(more.end());
    assert!(line.starts_with("DEADLOCK a waits for k ("), "{line}");
}

both_ways!(what_the_owner_came_to_hold_another_way_counts_too);
fn what_the_owner_came_to_hold_another_way_counts_too(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "c", "LIMIT 4 PERMITS 4");
    let mut first = by.permits(&server, "k", "a", "LIMIT 4 PERMITS 2");
    let mut second = by.permits(&server, "k", "a", "LIMIT 4 PERMITS 4");
    client.give_back("k", "c", 2);
    first.token();
    let line = error(second.end());
    assert!(line.starts_with("DEADLOCK a waits for k ("), "{line}");
    assert_eq!(client.permits("k"), "a=2 c=2 mode=permits 4 4 4");
}

#[test]
fn a_try_waits_for_nobody() {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["a", "b"] {
        client.take_permits("k", owner, "LIMIT 4 PERMITS 2");
    }
    let _waits = Way::Block.permits(&server, "k", "a", "LIMIT 4 PERMITS 2");
    for owner in ["a", "b"] {
        for share in ["LIMIT 4 PERMITS 2", "LIMIT 4 PERMITS 4"] {
            assert!(client.refused(&format!("RLOCK.ACQUIRE k {owner} {LONG} {share}")));
        }
    }
    assert_eq!(client.counter("rlock_deadlocks_refused"), 0);
}

/// Any permit that comes back will do, so nobody can say who it is that is waited for.
#[test]
fn over_two_keys_it_is_not_detected() {
    let server = Server::start();
    let mut client = server.raw();
    client.take("p", "a");
    client.take_permits("k", "b", "LIMIT 1");
    let mut permits = Way::Block.permits(&server, "k", "a", "LIMIT 1");
    let mut plain = Way::Block.wait(&server, "p", "b");
    permits.still_waits();
    plain.still_waits();
    assert_eq!(client.counter("rlock_deadlocks_refused"), 0);
    // One of them gives up.
    assert_eq!(client.int("RLOCK.CANCEL k a"), 1);
    assert_eq!(permits.end(), redis::Value::Nil);
    client.release("p", "a");
    plain.token();
}

both_ways!(who_waits_for_permits_behind_one_that_waits_for_it_goes_before_it);
/// Nobody holds what it waits for who waits too: there is a way out of the ring.
fn who_waits_for_permits_behind_one_that_waits_for_it_goes_before_it(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("k", "x");
    client.take("m", "a");
    let mut plain = by.wait(&server, "k", "b");
    let mut other = by.wait(&server, "m", "b");
    let mut permits = by.permits(&server, "k", "a", "LIMIT 2");
    permits.still_waits();
    client.release("k", "x");
    permits.token();
    plain.still_waits();
    client.give_back("k", "a", 1);
    plain.token();
    client.release("m", "a");
    other.token();
}

both_ways!(who_waits_for_permits_behind_one_that_waits_for_it_gets_the_error);
fn who_waits_for_permits_behind_one_that_waits_for_it_gets_the_error(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("k", "b");
    client.take("m", "a");
    let mut other = by.wait(&server, "m", "b");
    let mut permits = by.permits(&server, "k", "a", "LIMIT 2");
    let line = error(permits.end());
    assert_eq!(line, "DEADLOCK a waits for k (b), b waits for m (a)");
    client.release("m", "a");
    other.token();
}

both_ways!(who_wants_more_goes_before_those_that_wait_for_all_of_its_own);
/// Who waits for the plain lock, or to read, waits for all permits to come back: an owner that
/// wants more of them would wait for itself behind it.
fn who_wants_more_goes_before_those_that_wait_for_all_of_its_own(by: Way) {
    for mode in ["", "READ", "WRITE"] {
        let server = Server::start();
        let mut client = server.raw();
        client.take_permits("k", "a", "LIMIT 4 PERMITS 2");
        let mut other = by.with(&server, &format!("k b {LONG} {mode} BLOCK 0"));
        let mut more = by.permits(&server, "k", "a", "LIMIT 4");
        more.token();
        other.still_waits();
        assert_eq!(client.give_back("k", "a", 3), 0);
        other.token();
    }
}

both_ways!(who_wants_more_waits_before_those_that_wait_for_all_of_its_own);
fn who_wants_more_waits_before_those_that_wait_for_all_of_its_own(by: Way) {
    for mode in ["", "READ", "WRITE"] {
        let server = Server::start();
        let mut client = server.raw();
        client.take_permits("k", "a", "LIMIT 4 PERMITS 2");
        client.take_permits("k", "c", "LIMIT 4 PERMITS 2");
        let mut other = by.with(&server, &format!("k b {LONG} {mode} BLOCK 0"));
        let mut more = by.permits(&server, "k", "a", "LIMIT 4");
        more.still_waits();
        client.give_back("k", "c", 1);
        more.token();
        client.give_back("k", "c", 1);
        client.give_back("k", "a", 3);
        other.token();
    }
}

both_ways!(a_wait_for_the_plain_lock_behind_one_for_permits_can_be_too);
fn a_wait_for_the_plain_lock_behind_one_for_permits_can_be_too(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 2");
    client.take("m", "a");
    let mut plain = by.wait(&server, "k", "a");
    let mut other = by.wait(&server, "m", "b");
    let line = error(other.end());
    assert_eq!(line, "DEADLOCK b waits for m (a), a waits for k (b)");
    client.give_back("k", "b", 1);
    plain.token();
}

#[test]
fn switched_off_nobody_is_refused() {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut client = server.raw();
    for owner in ["a", "b"] {
        client.take_permits("k", owner, "LIMIT 4 PERMITS 2");
    }
    let mut waits = ["a", "b"].map(|o| Way::Block.permits(&server, "k", o, "LIMIT 4 PERMITS 2"));
    assert_eq!(client.waiters("k"), 2);
    client.give_back("k", "b", 2);
    waits[0].token();
    client.give_back("k", "a", 2);
    waits[1].token();
}
