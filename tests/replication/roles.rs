//! Masters that turn replica, replicas that turn master, and data sets that load.

use redis::Value;

use crate::support::locks::{
    code, deadline, holder, info, int, is_free, pass, pong, take_until, token, Say, Waiter,
};
use crate::support::{eventually, Listener, Server};

#[track_caller]
fn role(server: &Server, role: &str) {
    eventually(&format!("it is a {role}"), || {
        server.info_field("replication", "role").as_deref() == Some(role)
    });
}

#[track_caller]
fn unharmed(server: &Server) {
    server.alive();
    let log = server.log();
    assert!(!log.contains("ASSERTION FAILED"), "{log}");
    assert!(!log.contains("the server refused a write"), "{log}");
}

#[test]
fn a_server_that_turns_replica_sends_its_waiters_away_and_expires_nothing() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for _ in 0..5 {
        control.say_all(&[
            "FLUSHALL",
            "RLOCK.ACQUIRE k a 100000",
            "RLOCK.ACQUIRE alone a 100000",
        ]);
        let mut waiters: Vec<_> = (0..5)
            .map(|n| Waiter::new(&server, "k", &format!("w{n}")))
            .collect();
        let mut events = Listener::keyspace(&server, 0);
        // A master that nobody reaches: the data set stays as it is.
        let replies = control.say_all(&[
            "PEXPIRE k 100",
            "PEXPIRE alone 100",
            "PEXPIRETIME alone",
            "REPLICAOF 127.0.0.1 1",
        ]);
        let ends = int(replies[2].clone());
        assert_eq!(replies[3], Value::Okay);
        for waiter in &mut waiters {
            // The server's own doing: the error, and it closes the connection.
            assert_eq!(code(&waiter.client.read()), "UNBLOCKED");
            assert!(waiter.client.is_closed());
        }
        assert_eq!(info(&mut control, "k").waiters, 0);
        assert_eq!(code(&control.say("RLOCK.ACQUIRE k z 1000")), "READONLY");
        pass(ends + 300);
        let told = events.events();
        let ours = |event: &&(String, String)| event.0.starts_with("rlock.");
        assert_eq!(told.iter().find(ours), None);

        assert_eq!(control.say("REPLICAOF NO ONE"), Value::Okay);
        let mut again = Waiter::with(&server, "k b 300 BLOCK 5000");
        again.token();
        let mut next = Waiter::new(&server, "k", "c");
        next.token();
        assert_eq!(holder(&mut control, "k").as_deref(), Some("c"));
        assert_eq!(control.say("RLOCK.RELEASE k c"), Value::Int(0));
        is_free(&mut control, "k");
    }
    unharmed(&server);
}

#[test]
fn a_replica_expires_and_grants_nothing_and_does_once_it_is_master() {
    let server = Server::start();
    let replica = Server::start_replica_with(&server, &["--appendonly", "yes"]);
    let (mut control, mut copy) = (server.raw(), replica.raw());
    control.say_all(&["RLOCK.ACQUIRE k a 2500", "RLOCK.ACQUIRE long a 100000"]);
    let ends = deadline(&mut control, "k");
    assert_eq!(control.say("WAIT 1 10000"), Value::Int(1));
    let mut events = Listener::keyspace(&replica, 0);
    assert_eq!(info(&mut copy, "k").mode, "exclusive");
    // The master stands still: only the replica itself could end the lease.
    server.pause_process();
    pass(ends + 300);
    assert_eq!(events.events(), []);

    assert_eq!(copy.say("REPLICAOF NO ONE"), Value::Okay);
    token(copy.say("RLOCK.ACQUIRE k b 100000"));
    let mut waiter = Waiter::new(&replica, "long", "b");
    assert_eq!(copy.say("RLOCK.RELEASE long a"), Value::Int(0));
    waiter.token();
    assert_eq!(holder(&mut copy, "long").as_deref(), Some("b"));
    server.resume_process();
    unharmed(&server);
    unharmed(&replica);
}

#[test]
fn a_failover_sends_waiters_away_and_takes_the_locks_along() {
    let one = Server::start_with(&["--appendonly", "yes"]);
    let other = Server::start_replica_with(&one, &["--appendonly", "yes"]);
    let (mut master, mut replica) = (&one, &other);
    for round in 0..3 {
        role(master, "master");
        role(replica, "slave");
        let mut control = master.raw();
        eventually("the replica is online", || {
            let state = master.info_field("replication", "slave0");
            state.is_some_and(|state| state.contains("state=online"))
        });
        control.say("FLUSHALL");
        control.say("RLOCK.ACQUIRE k a 100000");
        control.say(&format!("RLOCK.ACQUIRE ends a {}", 20 + 100 * round));
        let mut waiters: Vec<_> = (0..5)
            .flat_map(|n| [("k", n), ("ends", n)])
            .map(|(key, n)| Waiter::with(master, &format!("{key} w{n} 50 BLOCK 0")))
            .collect();
        assert_eq!(control.say("FAILOVER"), Value::Okay);
        role(master, "slave");
        role(replica, "master");
        for waiter in &mut waiters {
            // Some leases may have gone round before the failover began.
            match waiter.client.read() {
                granted @ Value::Int(_) => drop(token(granted)),
                error => {
                    assert_eq!(code(&error), "UNBLOCKED");
                    assert!(waiter.client.is_closed());
                }
            }
        }
        assert_eq!(info(&mut control, "k").waiters, 0);
        assert_eq!(info(&mut control, "ends").waiters, 0);

        let mut promoted = replica.raw();
        assert_eq!(holder(&mut promoted, "k").as_deref(), Some("a"));
        let mut waiter = Waiter::new(replica, "k", "b");
        assert_eq!(promoted.say("RLOCK.RELEASE k a"), Value::Int(0));
        waiter.token();
        token(Waiter::new(replica, "ends", "z").client.read());
        std::mem::swap(&mut master, &mut replica);
    }
    unharmed(&one);
    unharmed(&other);
}

#[test]
fn a_lease_that_ends_while_the_data_set_loads_is_handed_on_after_it() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    control.say("DEBUG POPULATE 2000 filler 10");
    let ends = take_until(&mut control, "k", 400);
    control.say("RLOCK.ACQUIRE held a 100000");
    let mut granted = Waiter::new(&server, "k", "b");
    let mut timed_out = Waiter::with(&server, "held b 1000 BLOCK 300");
    let mut waiting = Waiter::new(&server, "held", "c");
    // Half a millisecond for each of 2,000 keys.
    assert_eq!(control.say("CONFIG SET key-load-delay 500"), Value::Okay);
    assert_eq!(control.say("DEBUG RELOAD"), Value::Okay);
    granted.token();
    pass(ends);
    assert_eq!(timed_out.client.read(), Value::Nil);
    assert_eq!(holder(&mut control, "k").as_deref(), Some("b"));
    assert_eq!(holder(&mut control, "held").as_deref(), Some("a"));
    assert_eq!(control.say("RLOCK.RELEASE held a"), Value::Int(0));
    waiting.token();
    unharmed(&server);
}

#[test]
fn a_full_resync_replaces_what_was_known() {
    let server = Server::start();
    let other = Server::start();
    let (mut control, mut source) = (server.raw(), other.raw());
    let old = token(control.say("RLOCK.ACQUIRE k a 100000"));
    control.say("RLOCK.ACQUIRE gone a 100000");
    source.say("RLOCK.ACQUIRE k z 100000");
    let mut waiter = Waiter::new(&server, "k", "b");
    control.say(&format!("REPLICAOF 127.0.0.1 {}", other.port()));
    assert_eq!(code(&waiter.client.read()), "UNBLOCKED");
    eventually("it is in sync", || {
        let link = server.info_field("replication", "master_link_status");
        link.as_deref() == Some("up") && holder(&mut control, "k").as_deref() == Some("z")
    });
    control.say("REPLICAOF NO ONE");
    assert_eq!(control.say("RLOCK.ACQUIRE k a 1000"), Value::Nil);
    let mut waiter = Waiter::new(&server, "k", "b");
    assert_eq!(control.say("RLOCK.RELEASE k z"), Value::Int(0));
    assert!(waiter.token() > old);
    assert!(token(control.say("RLOCK.ACQUIRE gone c 100000")) > old);
    assert_eq!(control.say("PING"), pong());
    unharmed(&server);
}

#[test]
fn a_grant_in_the_turn_of_a_demotion_is_answered_with_an_error_and_stays_written() {
    let server = Server::start();
    let mut control = server.raw();
    for _ in 0..5 {
        token(control.say("RLOCK.ACQUIRE k a 100000"));
        let mut waiter = Waiter::new(&server, "k", "b");
        // In one write: the reply of the grant has not left when the role changes.
        let replies = control.say_all(&["RLOCK.RELEASE k a", "REPLICAOF 127.0.0.1 1"]);
        assert_eq!(replies, [Value::Int(0), Value::Okay]);
        assert_eq!(code(&waiter.client.read()), "UNBLOCKED");
        assert!(waiter.client.is_closed());
        assert_eq!(holder(&mut control, "k").as_deref(), Some("b"));
        // It is its owner's to release, where there is a master.
        assert_eq!(control.say("REPLICAOF NO ONE"), Value::Okay);
        assert_eq!(control.say("RLOCK.RELEASE k b"), Value::Int(0));
    }
    unharmed(&server);
}
