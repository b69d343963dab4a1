//! A server that would refuse a client's write grants to nobody and expires
//! nothing on its own, and does both as soon as it may.

use redis::Value;

use crate::support::{
    code, eventually, int, now_ms, pair, pass, poll, token, unharmed, Ask, Listener, RawClient,
    Server, Waiter, BOUND,
};

/// Shuts the gate, with the leases of `k` and `alone` about to end: when. All in one
/// write, so they end behind the gate.
#[track_caller]
fn run_out_behind(control: &mut RawClient, gate: &str) -> i64 {
    let ends = ["PEXPIRE k 100", "PEXPIRE alone 100", "PEXPIRETIME k"];
    let replies = control.ask_all(&[&ends[..], &[gate]].concat());
    assert_eq!(replies[3], Value::Okay, "{gate}");
    int(replies[2].clone())
}

#[test]
fn without_enough_replicas_nothing_is_granted_or_expired() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    control.ask("RLOCK.ACQUIRE k a 100000");
    control.ask("RLOCK.ACQUIRE alone a 100000");
    let mut first = Waiter::new(&server, "k", "b");
    let begin = now_ms();
    let mut short = Waiter::with(&server, "k c 100000 BLOCK 800");
    let mut gone = Waiter::new(&server, "k", "d");
    let mut dead = Waiter::new(&server, "k", "e");
    let mut last = Waiter::new(&server, "k", "f");
    let ends = run_out_behind(&mut control, "CONFIG SET min-replicas-to-write 2");

    // Waits end as ever.
    assert_eq!(short.client.read(), Value::Nil);
    assert!(now_ms() >= begin + 800);
    control.ask(&format!("CLIENT UNBLOCK {} ERROR", gone.id));
    assert_eq!(code(&gone.client.read()), "UNBLOCKED");
    control.ask(&format!("CLIENT KILL ID {}", dead.id));
    assert!(dead.client.is_closed());
    pass(ends + 500);
    assert_eq!(control.waiters("k"), 2);
    assert_eq!(control.hash("k"), "");
    assert_eq!(control.code("RLOCK.ACQUIRE k z 1000"), "NOREPLICAS");
    // Readers see both gone, and nobody has told of it yet.
    assert_eq!(control.int("EXISTS k alone"), 0);
    let mut told = events.events();
    assert_eq!(told.iter().find(|event| event.0 == "rlock.expired"), None);
    told.clear();

    let open = now_ms();
    control.ok("CONFIG SET min-replicas-to-write 0");
    let granted = first.token();
    assert!(now_ms() < open + 5000, "not at once");
    assert_eq!(control.info("k").holds(), [("b", 1, Some(granted))]);
    assert!(control.ends("k") >= open + 100_000, "from the grant on");
    assert_eq!(control.hash("k"), "b=1");
    control.has_waiters("k", 1);
    let count = |told: &[(String, String)], key: &str| {
        let event = ("rlock.expired".to_owned(), key.to_owned());
        told.iter().filter(|heard| **heard == event).count()
    };
    poll(BOUND, || {
        told.extend(events.events());
        (count(&told, "k") >= 1 && count(&told, "alone") >= 1).then_some(())
    });
    let times = (count(&told, "k"), count(&told, "alone"));
    assert_eq!(times, (1, 1), "{told:?}");
    let of_k = |event: &&(String, String)| event.1 == "k" && event.0.starts_with("rlock.");
    let order: Vec<_> = told.iter().filter(of_k).map(|(event, _)| event).collect();
    assert_eq!(order, ["rlock.expired", "rlock.acquired"]);
    control.ask("RLOCK.RELEASE k b");
    last.token();
    gone.client.in_step();
    short.client.in_step();
    unharmed(&server, &replica, "k");
}

#[test]
fn a_pause_holds_back_grants_and_expiries_until_it_is_over() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    for kind in ["WRITE", "ALL"] {
        let mut control = server.raw();
        let mut events = Listener::keyspace(&server, 0);
        control.ask_all(&[
            "DEL k",
            "RLOCK.ACQUIRE k a 100000",
            "RLOCK.ACQUIRE alone a 100000",
        ]);
        let dead = Waiter::new(&server, "k", "dead");
        let begin = now_ms();
        let mut short = Waiter::with(&server, "k c 100000 BLOCK 700");
        let mut first = Waiter::new(&server, "k", "b");
        let mut last = Waiter::new(&server, "k", "d");
        let pause = now_ms();
        run_out_behind(&mut control, &format!("CLIENT PAUSE 3000 {kind}"));
        dead.client.close();

        // BLOCK ends during the pause.
        assert_eq!(short.client.read(), Value::Nil);
        let at = now_ms();
        assert!(at >= begin + 700, "{kind}: after {} ms", at - begin);
        assert!(
            at < pause + 2990,
            "{kind}: {} ms into the pause",
            at - pause
        );

        first.token();
        let at = now_ms();
        assert!(at >= pause + 2990, "{kind}: granted during the pause");
        assert!(
            at < pause + 8000,
            "{kind}: granted at {at}, long after the pause"
        );
        assert_eq!(control.hash("k"), "b=1", "{kind}");
        assert_eq!(control.waiters("k"), 1, "{kind}");
        let mut count = 0;
        eventually("the lease's end is told of", || {
            count += events.count("rlock.expired", "k");
            count == 1
        });
        control.ask("RLOCK.RELEASE k b");
        last.token();
        first.client.in_step();
        control.is_free("alone");
        unharmed(&server, &replica, "k");
    }
}

#[test]
fn waiters_that_leave_during_a_pause_are_passed_over_after_it() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for _ in 0..5 {
        control.ask_all(&["DEL k", "RLOCK.ACQUIRE k a 100000"]);
        let mut unblocked = Waiter::new(&server, "k", "b");
        let mut timed_out = Waiter::new(&server, "k", "c");
        let mut killed = Waiter::new(&server, "k", "d");
        let closed = Waiter::new(&server, "k", "e");
        let mut next = Waiter::new(&server, "k", "f");
        let ends = run_out_behind(&mut control, "CLIENT PAUSE 20000 WRITE");
        // The lease ends, and nobody may have the lock.
        pass(ends + 20);
        let granted = [&mut unblocked, &mut timed_out, &mut killed]
            .into_iter()
            .any(|waiter| waiter.client.heard().is_some());
        assert!(!granted, "granted during the pause");
        control.ask(&format!("CLIENT UNBLOCK {} ERROR", unblocked.id));
        control.ask(&format!("CLIENT UNBLOCK {}", timed_out.id));
        control.ask(&format!("CLIENT KILL ID {}", killed.id));
        closed.client.close();
        assert_eq!(code(&unblocked.client.read()), "UNBLOCKED");
        assert_eq!(timed_out.client.read(), Value::Nil);
        assert!(killed.client.is_closed());
        control.has_waiters("k", 1);
        control.ok("CLIENT UNPAUSE");
        next.token();
        assert_eq!(control.hash("k"), "f=1");
        unblocked.client.in_step();
        timed_out.client.in_step();
    }
    unharmed(&server, &replica, "k");
}

#[test]
fn a_grant_that_is_lost_as_a_pause_begins_goes_on_after_it() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for kind in ["WRITE", "ALL"] {
        for hit in ["CLIENT UNBLOCK", "CLIENT KILL ID"] {
            for _ in 0..10 {
                control.ask_all(&["DEL k", "RLOCK.ACQUIRE k a 100000"]);
                let mut lost = Waiter::new(&server, "k", "b");
                let mut next = Waiter::new(&server, "k", "c");
                let error = if hit == "CLIENT UNBLOCK" { "ERROR" } else { "" };
                let replies = control.ask_all(&[
                    "RLOCK.RELEASE k a".to_owned(),
                    format!("{hit} {} {error}", lost.id),
                    format!("CLIENT PAUSE 60 {kind}"),
                ]);
                assert_eq!(replies[0], Value::Int(0));
                if error.is_empty() {
                    assert!(lost.client.is_closed());
                } else {
                    let reply = lost.client.read();
                    if let Value::Int(_) = reply {
                        token(reply);
                        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
                    }
                    lost.client.in_step();
                }
                next.token();
                assert_eq!(control.hash("k"), "c=1");
            }
        }
    }
    unharmed(&server, &replica, "k");
}

#[test]
fn a_stall_longer_than_lease_and_block_ends_both_once() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    control.ask_all(&[
        "RLOCK.ACQUIRE ends a 2000",
        "RLOCK.ACQUIRE both a 2000",
        "RLOCK.ACQUIRE held a 100000",
    ]);
    let mut events = Listener::keyspace(&server, 0);
    let mut granted = Waiter::with(&server, "ends b 5000 BLOCK 0");
    let mut timed_out = Waiter::with(&server, "held b 5000 BLOCK 2000");
    let mut either = Waiter::with(&server, "both b 5000 BLOCK 2500");
    let start = now_ms();
    server.pause_process();
    // What the holder sends while the server stands still comes too late.
    control.send("RLOCK.RENEW ends a 5000");
    pass(start + 4000);
    let awake = now_ms();
    server.resume_process();

    granted.token();
    assert_eq!(timed_out.client.read(), Value::Nil);
    assert_eq!(code(&control.read()), "NOTHELD");
    assert!(
        control.ends("ends") >= awake + 5000,
        "counts from the grant"
    );
    assert_eq!(control.hash("ends"), "b=1");
    assert_eq!(control.hash("held"), "a=1");
    match either.client.read() {
        Value::Nil => control.is_free("both"),
        granted => {
            token(granted);
            assert_eq!(control.hash("both"), "b=1");
        }
    }
    let mut told = Vec::new();
    for key in ["ends", "both"] {
        let event = ("rlock.expired".to_owned(), key.to_owned());
        eventually("the lease's end is told of", || {
            told.extend(events.events());
            told.contains(&event)
        });
        told.extend(events.events());
        let times = told.iter().filter(|heard| **heard == event).count();
        assert_eq!(times, 1, "{key}");
    }
    for waiter in [&mut granted, &mut timed_out, &mut either] {
        waiter.client.in_step();
    }
    unharmed(&server, &replica, "ends");
}

/// Whether it may grant, and why not, as INFO tells.
fn told(client: &mut RawClient) -> String {
    let section = client.text("INFO rlock");
    let field = |name: &str| {
        let line = section.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("?").to_owned()
    };
    format!(
        "{}, {}",
        field("rlock_may_grant:"),
        field("rlock_may_grant_why:")
    )
}

#[test]
fn info_shows_whether_it_may_grant_and_why_not() {
    let (server, replica) = pair(&[]);
    let (mut control, mut copy) = (server.raw(), replica.raw());
    let tells = |client: &mut RawClient, wanted: &str| {
        eventually(&format!("it tells {wanted}"), || told(client) == wanted);
    };
    tells(&mut control, "1, ok");
    tells(&mut copy, "0, replica");
    control.ok("CONFIG SET min-replicas-to-write 2");
    tells(&mut control, "0, noreplicas");
    control.ok("CONFIG SET min-replicas-to-write 0");
    tells(&mut control, "1, ok");
    control.ok("CLIENT PAUSE 100000 WRITE");
    tells(&mut control, "0, paused");
    control.ok("CLIENT UNPAUSE");
    tells(&mut control, "1, ok");
    copy.ok("REPLICAOF NO ONE");
    tells(&mut copy, "1, ok");
    let cluster = Server::start_with(&["--cluster-enabled", "yes"]);
    let mut node = cluster.raw();
    node.ok("CLUSTER ADDSLOTSRANGE 1 16383");
    tells(&mut node, "0, clusterdown");
}
