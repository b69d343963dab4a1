//! What a replica, and the file that a restart reads, see of watchdog holds: plain
//! keys whose leases move on.

use redis::Value;

use crate::support::{eventually, now_ms, pass, Ask, Bound, Listener, RawClient, Server, Waiter};

#[track_caller]
fn same_on_both(control: &mut RawClient, copy: &mut RawClient, key: &str) {
    let look = [
        format!("PEXPIRETIME {key}"),
        format!("HGETALL {key}"),
        format!("TYPE {key}"),
    ];
    eventually(&format!("both have the same {key}"), || {
        control.ask_all(&look) == copy.ask_all(&look)
    });
}

#[test]
fn a_replica_has_every_renewal_and_every_end() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let replica = Server::start_replica_of(&server);
    let (mut control, mut copy) = (server.raw(), replica.raw());
    let held = Bound::with(&server, "k a 1500");
    let mut ends = Vec::new();
    for _ in 0..3 {
        same_on_both(&mut control, &mut copy, "k");
        ends.push(copy.ask("PEXPIRETIME k"));
        pass(now_ms() + 1000);
    }
    ends.dedup();
    assert!(ends.len() > 1, "never renewed: {ends:?}");
    // It knows the hold and not the connection.
    let seen = copy.only("k");
    assert_eq!((seen.owner.as_str(), seen.watchdog), ("a", None));

    let mut next = Waiter::new(&server, "k", "b");
    held.client.close();
    next.token();
    same_on_both(&mut control, &mut copy, "k");
    assert_eq!(copy.held_by("k"), "b exclusive 1");
    control.ask("RLOCK.RELEASE k b");
    eventually("it is gone there too", || {
        copy.ask("EXISTS k") == Value::Int(0)
    });
    server.alive();
    replica.alive();
}

#[test]
fn a_replica_has_the_lease_of_a_reader_and_of_its_lock() {
    let server = Server::start();
    let replica = Server::start_replica_of(&server);
    let (mut control, mut copy) = (server.raw(), replica.raw());
    let held = Bound::with(&server, "k a 1500 READ");
    let lease = "{k}:a:rwlock_timeout:1";
    let same = |control: &mut RawClient, copy: &mut RawClient| {
        let ends = |client: &mut RawClient| {
            let lease = format!("PEXPIRETIME {lease}");
            client.ask_all(&["PEXPIRETIME k", &lease])
        };
        eventually("both have the same leases", || {
            let (here, there) = (ends(control), ends(copy));
            here == there && !here.contains(&Value::Int(-2))
        });
    };
    same(&mut control, &mut copy);
    pass(now_ms() + 2500);
    same(&mut control, &mut copy);
    held.client.close();
    eventually("all of it is gone there too", || {
        copy.ask("DBSIZE") == Value::Int(0)
    });
    assert_eq!(control.int("DBSIZE"), 0);
}

#[test]
fn a_replica_renews_and_releases_nothing_on_its_own() {
    let server = Server::start();
    let replica = Server::start_replica_of(&server);
    let mut copy = replica.raw();
    let mut held = Bound::with(&server, "k a 1000");
    assert_eq!(held.client.int("WAIT 1 10000"), 1);
    let mut events = Listener::keyspace(&replica, 0);
    // The master says nothing any more.
    server.pause_process();
    eventually("the lease runs out there", || {
        copy.ask("EXISTS k") == Value::Int(0)
    });
    let told = events.events();
    assert!(!told.iter().any(|event| event.0.starts_with("rlock.")));
    server.resume_process();
    eventually("the master renews on", || {
        copy.held_by("k") == "a exclusive 1"
    });
    assert_eq!(server.raw().only("k").token, Some(held.token));
    held.client.in_step();
}

#[test]
fn a_restart_finds_the_hold_with_its_last_lease() {
    let mut server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let held = Bound::with(&server, "k a 20000");
    let nested = Bound::with(&server, "k a 20000");
    let ends = held.client;
    server.kill();
    server.start_again();
    let mut control = server.raw();
    assert_eq!(control.hash("k"), "a=2");
    assert_eq!(control.only("k").watchdog, None);
    assert!(control.ask("PTTL k") != Value::Int(-1));
    assert_eq!(control.int("RLOCK.RELEASE k a ALL"), 0);
    drop((ends, nested));
}
