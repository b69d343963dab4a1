//! Masters that turn replica, replicas that turn master, and data sets that load.

use redis::Value;

use crate::support::{code, eventually, int, pass, token, Ask, Listener, Server, Session, Waiter};

#[track_caller]
fn role(server: &Server, role: &str) {
    eventually(&format!("it is a {role}"), || {
        server.info_field("replication", "role").as_deref() == Some(role)
    });
}

#[test]
fn a_server_that_turns_replica_sends_its_waiters_away_and_expires_nothing() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for _ in 0..5 {
        control.ask_all(&[
            "FLUSHALL",
            "RLOCK.ACQUIRE k a 100000",
            "RLOCK.ACQUIRE alone a 100000",
        ]);
        let mut waiters: Vec<_> = (0..5)
            .map(|n| Waiter::new(&server, "k", &format!("w{n}")))
            .collect();
        let mut events = Listener::keyspace(&server, 0);
        // A master that nobody reaches: the data set stays as it is.
        let replies = control.ask_all(&[
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
        assert_eq!(control.waiters("k"), 0);
        assert_eq!(control.code("RLOCK.ACQUIRE k z 1000"), "READONLY");
        pass(ends + 300);
        let told = events.events();
        let ours = |event: &&(String, String)| event.0.starts_with("rlock.");
        assert_eq!(told.iter().find(ours), None);

        control.ok("REPLICAOF NO ONE");
        let mut again = Waiter::with(&server, "k b 300 BLOCK 5000");
        again.token();
        let mut next = Waiter::new(&server, "k", "c");
        next.token();
        assert_eq!(control.hash("k"), "c=1");
        assert_eq!(control.int("RLOCK.RELEASE k c"), 0);
        control.is_free("k");
    }
    server.unharmed();
}

#[test]
fn a_replica_expires_and_grants_nothing_and_does_once_it_is_master() {
    let server = Server::start();
    let replica = Server::start_replica_with(&server, &["--appendonly", "yes"]);
    let (mut control, mut copy) = (server.raw(), replica.raw());
    control.ask_all(&["RLOCK.ACQUIRE k a 2500", "RLOCK.ACQUIRE long a 100000"]);
    let ends = control.ends("k");
    assert_eq!(control.int("WAIT 1 10000"), 1);
    let mut events = Listener::keyspace(&replica, 0);
    assert_eq!(copy.mode("k"), "exclusive");
    // The master stands still: only the replica itself could end the lease.
    server.pause_process();
    pass(ends + 300);
    assert_eq!(events.events(), []);

    copy.ok("REPLICAOF NO ONE");
    copy.token("RLOCK.ACQUIRE k b 100000");
    let mut waiter = Waiter::new(&replica, "long", "b");
    assert_eq!(copy.int("RLOCK.RELEASE long a"), 0);
    waiter.token();
    assert_eq!(copy.hash("long"), "b=1");
    server.resume_process();
    server.unharmed();
    replica.unharmed();
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
        control.ask("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 100000");
        control.ask(&format!("RLOCK.ACQUIRE ends a {}", 20 + 100 * round));
        let mut waiters: Vec<_> = (0..5)
            .flat_map(|n| [("k", n), ("ends", n)])
            .map(|(key, n)| Waiter::with(master, &format!("{key} w{n} 50 BLOCK 0")))
            .collect();
        control.ok("FAILOVER");
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
        assert_eq!(control.waiters("k"), 0);
        assert_eq!(control.waiters("ends"), 0);

        let mut promoted = replica.raw();
        assert_eq!(promoted.hash("k"), "a=1");
        let mut waiter = Waiter::new(replica, "k", "b");
        assert_eq!(promoted.int("RLOCK.RELEASE k a"), 0);
        waiter.token();
        token(Waiter::new(replica, "ends", "z").client.read());
        std::mem::swap(&mut master, &mut replica);
    }
    one.unharmed();
    other.unharmed();
}

#[test]
fn a_lease_that_ends_while_the_data_set_loads_is_handed_on_after_it() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    control.ask("DEBUG POPULATE 2000 filler 10");
    let ends = control.take_until("k", 400);
    control.ask("RLOCK.ACQUIRE held a 100000");
    let mut granted = Waiter::new(&server, "k", "b");
    let mut timed_out = Waiter::with(&server, "held b 1000 BLOCK 300");
    let mut waiting = Waiter::new(&server, "held", "c");
    // Half a millisecond for each of 2,000 keys.
    control.ok("CONFIG SET key-load-delay 500");
    control.ok("DEBUG RELOAD");
    granted.token();
    pass(ends);
    assert_eq!(timed_out.client.read(), Value::Nil);
    assert_eq!(control.hash("k"), "b=1");
    assert_eq!(control.hash("held"), "a=1");
    assert_eq!(control.int("RLOCK.RELEASE held a"), 0);
    waiting.token();
    server.unharmed();
}

#[test]
fn a_full_resync_replaces_what_was_known() {
    let server = Server::start();
    let other = Server::start();
    let (mut control, mut source) = (server.raw(), other.raw());
    let old = control.token("RLOCK.ACQUIRE k a 100000");
    control.ask("RLOCK.ACQUIRE gone a 100000");
    source.ask("RLOCK.ACQUIRE k z 100000");
    let mut waiter = Waiter::new(&server, "k", "b");
    control.ask(&format!("REPLICAOF 127.0.0.1 {}", other.port()));
    assert_eq!(code(&waiter.client.read()), "UNBLOCKED");
    eventually("it is in sync", || {
        let link = server.info_field("replication", "master_link_status");
        link.as_deref() == Some("up") && control.hash("k") == "z=1"
    });
    control.ask("REPLICAOF NO ONE");
    assert!(control.refused("RLOCK.ACQUIRE k a 1000"));
    let mut waiter = Waiter::new(&server, "k", "b");
    assert_eq!(control.int("RLOCK.RELEASE k z"), 0);
    assert!(waiter.token() > old);
    assert!(control.token("RLOCK.ACQUIRE gone c 100000") > old);
    control.in_step();
    server.unharmed();
}

#[test]
fn a_grant_in_the_turn_of_a_demotion_is_answered_with_an_error_and_stays_written() {
    let server = Server::start();
    let mut control = server.raw();
    for _ in 0..5 {
        control.token("RLOCK.ACQUIRE k a 100000");
        let mut waiter = Waiter::new(&server, "k", "b");
        // In one write: the reply of the grant has not left when the role changes.
        let replies = control.ask_all(&["RLOCK.RELEASE k a", "REPLICAOF 127.0.0.1 1"]);
        assert_eq!(replies, [Value::Int(0), Value::Okay]);
        assert_eq!(code(&waiter.client.read()), "UNBLOCKED");
        assert!(waiter.client.is_closed());
        assert_eq!(control.hash("k"), "b=1");
        // It is its owner's to release, where there is a master.
        control.ok("REPLICAOF NO ONE");
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
    }
    server.unharmed();
}

/// `replica-read-only no`: what a master ends and grants on its own nobody would there.
#[test]
fn a_replica_that_may_be_written_refuses_as_others_do() {
    let master = Server::start();
    let replica = Server::start_replica_with(&master, &["--replica-read-only", "no"]);
    let mut copy = replica.raw();
    copy.ok("SET own 1");
    let held = master.raw().take("k", "a");
    eventually("the replica has it", || copy.hash("k") == "a=1");
    let session = Session::new(&replica);
    for request in [
        "RLOCK.ACQUIRE free b 1000",
        "RLOCK.ACQUIRE k b 1000 BLOCK 0",
        "RLOCK.ACQUIRE k b 1000 READ WATCHDOG",
        "RLOCK.ACQUIRE k b 1000 LIMIT 2",
        &format!("RLOCK.ACQUIRE k b 1000 QUEUE 0 {}", session.notify("t")),
        "RLOCK.MACQUIRE 2 k free b 1000 BLOCK 0",
        "RLOCK.RELEASE k a",
        "RLOCK.RENEW k a 1000",
        &format!("RLOCK.RENEW k a 1000 FENCE {held}"),
        "RLOCK.MRELEASE 1 k a",
        "RLOCK.MRENEW 1 k a 1000",
        "RLOCK.FORCE k",
        "RLOCK.LIMIT k 1",
    ] {
        let line = copy.error(request);
        assert!(line.starts_with("READONLY "), "{request}: {line}");
        let line = "return redis.pcall(unpack(ARGV))";
        let mut script = vec!["EVAL", line, "0"];
        script.extend(request.split(' '));
        let line = copy.error(&script);
        assert!(line.starts_with("READONLY "), "{request}: {line}");
    }
    // What looks is answered.
    assert_eq!(copy.held_by("k"), "a exclusive 1");
    assert_eq!(copy.int("DBSIZE"), 2);
    assert_eq!(copy.counter("rlock_waiting"), 0);
    copy.ok("REPLICAOF NO ONE");
    let mut next = Waiter::new(&replica, "k", "b");
    copy.release("k", "a");
    next.token();
}
