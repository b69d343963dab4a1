//! A server that stood still does nothing of its own accord until it could hear what
//! happened meanwhile: whether it was replaced, and whether its replicas are there.

use std::time::Duration;

use redis::Value;

use crate::ask::replica_counts;
use crate::locks::{deadline, holder, info, now_ms, pass, token, Say, Waiter};
use crate::look::{goes_to, only, set, Bound};
use crate::support::{eventually, RawClient, Server};

/// Longer than any server needs to have served what is due.
const SOON: Duration = Duration::from_millis(1500);

const STOP: i64 = 2500;

/// A master with one replica that it counts.
fn pair(options: &[&str]) -> (Server, Server) {
    let server = Server::start_with(options);
    let replica = Server::start_replica_of(&server);
    replica_counts(&server);
    // Its cron has counted it too.
    let needs = options.contains(&"--min-replicas-to-write");
    eventually("it may write", || {
        !needs || server.raw().say("SET probe 1") == Value::Okay
    });
    (server, replica)
}

/// Locks that end during the stop, each with a waiter.
fn waited_for(server: &Server, count: usize) -> Vec<Waiter> {
    let mut control = server.raw();
    let waiters = (0..count).map(|n| {
        token(control.say(&format!("RLOCK.ACQUIRE k{n} a 1500")));
        Waiter::new(server, &format!("k{n}"), "b")
    });
    waiters.collect()
}

/// How many of them the server has granted their lock.
fn granted(waiters: &mut [Waiter], within: Duration) -> usize {
    pass(now_ms() + within.as_millis() as i64);
    let mut count = 0;
    for waiter in waiters {
        if let Some(reply) = waiter.client.read_within(Duration::from_millis(1)) {
            count += usize::from(matches!(reply, Value::Int(_)));
        }
    }
    count
}

fn stop_and(server: &Server, meanwhile: impl FnOnce()) {
    let stopped = now_ms();
    server.pause_process();
    meanwhile();
    pass(stopped + STOP);
    server.resume_process();
}

fn promote(replica: &Server) {
    assert_eq!(replica.raw().say("REPLICAOF NO ONE"), Value::Okay);
}

#[test]
fn a_master_that_needs_replicas_and_was_replaced_during_a_stop_grants_to_nobody() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut waiters = waited_for(&server, 50);
    stop_and(&server, || promote(&replica));
    assert_eq!(granted(&mut waiters, SOON), 0);
    let mut control = server.raw();
    for n in 0..50 {
        let key = format!("k{n}");
        assert_eq!(holder(&mut control, &key), None);
        assert_eq!(info(&mut control, &key).waiters, 1, "{key}");
    }
    // The new one grants.
    let taken = replica.raw().say("RLOCK.ACQUIRE k0 c 1000");
    assert!(matches!(taken, Value::Int(_)), "{taken:?}");
}

#[test]
fn a_master_whose_replicas_are_silent_after_a_stop_waits_for_them() {
    // The replica is there, says nothing, and is counted for ten seconds yet: so would
    // one be whose machine or network is gone.
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut waiters = waited_for(&server, 50);
    stop_and(&server, || replica.pause_process());
    assert_eq!(granted(&mut waiters, SOON), 0);
    assert_eq!(
        server
            .info_field("replication", "min_slaves_good_slaves")
            .as_deref(),
        Some("1"),
        "the server itself would write"
    );
    replica.resume_process();
    for waiter in &mut waiters {
        waiter.token();
    }
}

#[test]
fn grants_go_on_once_the_replicas_have_answered() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    for _ in 0..2 {
        let mut waiters = waited_for(&server, 50);
        stop_and(&server, || ());
        let woken = now_ms();
        for waiter in &mut waiters {
            waiter.token();
        }
        println!("granted {} ms after waking", now_ms() - woken);
        let mut control = server.raw();
        let mut copy = replica.raw();
        for n in 0..50 {
            let key = format!("k{n}");
            eventually("the replica has it", || {
                holder(&mut copy, &key).as_deref() == Some("b")
            });
            assert_eq!(
                control.say(&format!("RLOCK.RELEASE {key} b")),
                Value::Int(0)
            );
        }
    }
    assert!(!replica.log().contains("== CRITICAL"), "{}", replica.log());
}

#[test]
fn without_replicas_grants_go_on_once_the_cron_has_run() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut waiters = waited_for(&server, 50);
    stop_and(&server, || ());
    let woken = now_ms();
    for waiter in &mut waiters {
        waiter.token();
    }
    println!("granted {} ms after waking", now_ms() - woken);
}

#[test]
fn a_slow_command_is_a_stall_too() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut control = server.raw();
    let sleep = format!("DEBUG SLEEP {}", STOP as f64 / 1000.0);
    let mut waiters = waited_for(&server, 20);
    let mut other = server.raw();
    control.tell(&sleep);
    promote(&replica);
    assert_eq!(control.read(), Value::Okay);
    assert_eq!(granted(&mut waiters, SOON), 0);
    assert_eq!(other.say("EXISTS k1"), Value::Int(0), "its lease is over");
}

#[test]
fn holds_under_watchdogs_are_renewed_before_leases_end_once_it_has_heard() {
    let (server, _replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 600");
    let mut next = Waiter::new(&server, "k", "b");
    stop_and(&server, || ());
    goes_to(&mut control, "k", "a exclusive 1");
    let hold = only(&mut control, "k");
    assert_eq!(
        (hold.token, hold.watchdog),
        (Some(held.token), Some(held.id))
    );
    held.is_open();
    pass(now_ms() + 1000);
    held.is_open();
    assert!(next.client.read_within(Duration::from_millis(1)).is_none());
    assert_eq!(held.client.say("RLOCK.RELEASE k a"), Value::Int(0));
    next.token();
}

#[test]
fn a_watchdog_hold_of_a_master_that_was_replaced_is_closed() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut over = Bound::with(&server, "k a 600");
    let mut long = Bound::with(&server, "long a 100000");
    stop_and(&server, || promote(&replica));
    assert!(over.is_closed());
    long.is_open();
    let mut control = server.raw();
    set(&mut control, "min-replicas-to-write 0");
    crate::look::goes_free(&mut control, "k");
}

#[test]
fn a_clients_own_command_follows_the_servers_rule() {
    let server = Server::start();
    let mut holder_of = server.raw();
    token(holder_of.say("RLOCK.ACQUIRE k a 100000"));
    let mut next = Waiter::new(&server, "k", "b");
    let mut other = server.raw();
    other.say("PING");
    stop_and(&server, || {
        holder_of.tell("RLOCK.RELEASE k a");
        other.tell("RLOCK.ACQUIRE free c 100000");
    });
    assert_eq!(holder_of.read(), Value::Int(0));
    next.token();
    token(other.read());
    let mut control: RawClient = server.raw();
    assert!(deadline(&mut control, "k") > now_ms());
}
