//! Each owner has one lease for its permits: who renews it leaves those of the others.

use crate::support::{lease_from, Ask, RawClient, Server};

/// The deadlines of `a` and `b`, and that of the key.
fn ends(client: &mut RawClient) -> [i64; 3] {
    let key = client.deadline("k");
    let of = |owner| client.permits_end("k", owner);
    let [a, b] = ["a", "b"].map(of);
    [a, b, key]
}

#[test]
fn a_renewal_is_its_owners_alone() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE k a 100000 LIMIT 4 PERMITS 2");
    client.int("RLOCK.ACQUIRE k b 200000 LIMIT 4");
    let before = ends(&mut client);
    assert_eq!(before[1], before[2]);
    // Longer than it was, longer than all, and shorter.
    for (lease, owner) in [
        (150_000, 0),
        (300_000, 0),
        (50_000, 0),
        (1_000_000, 1),
        (60_000, 1),
    ] {
        let was = ends(&mut client);
        let name = ["a", "b"][owner];
        let (reply, range) = lease_from(lease, || {
            client.int(&format!("RLOCK.RENEW k {name} {lease} PERMITS"))
        });
        assert_eq!(reply, 1);
        let is = ends(&mut client);
        assert!(range.contains(&is[owner]), "{name} {lease}: {is:?}");
        assert_eq!(is[1 - owner], was[1 - owner], "{name} {lease}");
        assert_eq!(is[2], was[2].max(is[owner]), "the key is never shortened");
    }
    assert_eq!(client.permits("k"), "a=2 b=1 mode=permits 4 4 3");
}

#[test]
fn the_key_stays_for_the_longest_lease_whatever_ends_before() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE k a 200000 LIMIT 4");
    client.int("RLOCK.ACQUIRE k b 100000 LIMIT 4");
    let [a, ..] = ends(&mut client);
    client.int("RLOCK.ACQUIRE k c 300 LIMIT 4");
    client.permits_become("k", "a=1 b=1 mode=permits 4 4 2");
    assert_eq!(client.deadline("k"), a);
    client.int("RLOCK.RELEASE k a PERMITS");
    assert_eq!(client.deadline("k"), a);
    assert_eq!(client.int("RLOCK.RELEASE k b PERMITS"), 0);
    client.nothing_left("k");
}

#[test]
fn more_permits_lengthen_the_lease_and_never_shorten_it() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE k a 100000 LIMIT 4");
    let first = client.permits_end("k", "a");
    client.int("RLOCK.ACQUIRE k a 1000 LIMIT 4");
    let left = client.permits_end("k", "a");
    println!("{first} {left}");
    assert!(left >= first, "only RENEW sets a shorter one");
    let (_, range) = lease_from(200_000, || client.int("RLOCK.ACQUIRE k a 200000 LIMIT 4"));
    let ends = client.permits_end("k", "a");
    assert!(range.contains(&ends), "{ends}");
    // What is given back leaves the lease.
    client.give_back("k", "a", 2);
    assert_eq!(client.permits_end("k", "a"), ends);
    assert_eq!(client.deadline("k"), ends);
}

#[test]
fn a_shorter_lease_ends_sooner() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE k b 100000 LIMIT 4");
    client.int("RLOCK.ACQUIRE k a 100000 LIMIT 4 PERMITS 3");
    let mut waiter = crate::support::Way::Block.permits(&server, "k", "c", "LIMIT 4 PERMITS 2");
    let (_, range) = lease_from(300, || client.int("RLOCK.RENEW k a 300 PERMITS"));
    waiter.token();
    assert!(crate::support::now_ms() >= *range.start());
    assert_eq!(client.permits("k"), "b=1 c=2 mode=permits 4 4 3");
    assert_eq!(client.code("RLOCK.RENEW k a 1000 PERMITS"), "NOTHELD");
}
