//! A server that stood still does nothing of its own accord until it could hear what
//! happened meanwhile: whether it was replaced, and whether its replicas are there.

use std::time::Duration;

use redis::Value;

use crate::support::ask::replica_counts;
use crate::support::locks::{deadline, holder, info, now_ms, pass, token, Say, Waiter};
use crate::support::look::{goes_to, only, set, Bound};
use crate::support::{eventually, eventually_within, RawClient, Server};

/// Longer than any server needs to have served what is due.
const SOON: Duration = Duration::from_millis(1500);

const STOP: i64 = 2500;

/// A master with one replica that it counts.
pub fn pair(options: &[&str]) -> (Server, Server) {
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
pub fn waited_for(server: &Server, count: usize) -> Vec<Waiter> {
    let mut control = server.raw();
    let waiters = (0..count).map(|n| {
        token(control.say(&format!("RLOCK.ACQUIRE k{n} a 1500")));
        Waiter::new(server, &format!("k{n}"), "b")
    });
    waiters.collect()
}

/// How many of them the server has granted their lock.
pub fn granted(waiters: &mut [Waiter], within: Duration) -> usize {
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

/// A client's own command goes by the server's rule, and by no more than that.
#[test]
fn nor_does_it_for_a_command_that_came_during_the_stop() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut others: Vec<RawClient> = (0..20).map(|_| server.raw()).collect();
    token(others[0].say("RLOCK.ACQUIRE other o 60000"));
    let mut holders = Vec::new();
    let mut waiters: Vec<Waiter> = (0..20)
        .map(|n| {
            let mut holder = server.raw();
            token(holder.say(&format!("RLOCK.ACQUIRE w{n} a 60000 WATCHDOG")));
            holders.push(holder);
            Waiter::new(&server, &format!("w{n}"), "b")
        })
        .collect();
    stop_and(&server, || {
        holders.into_iter().for_each(RawClient::close);
        for other in &mut others {
            other.send(&["RLOCK.RENEW", "other", "o", "60000"]);
        }
        promote(&replica);
    });
    assert_eq!(granted(&mut waiters, SOON), 0);
}

/// Three masters of a cluster, and a replica of the first.
fn cluster() -> Vec<Server> {
    let options = [
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "1000",
        "--cluster-replica-validity-factor",
        "0",
    ];
    let nodes: Vec<Server> = (0..4).map(|_| Server::start_with(&options)).collect();
    for (node, slots) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        let reply = node.raw().say(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
        assert_eq!(reply, Value::Okay);
    }
    for (epoch, node) in nodes.iter().enumerate() {
        let epoch = format!("CLUSTER SET-CONFIG-EPOCH {}", epoch + 1);
        assert_eq!(node.raw().say(&epoch), Value::Okay);
        let meet = format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].port());
        assert_eq!(node.raw().say(&meet), Value::Okay);
    }
    let knows = |node: &Server, what: &str| {
        let text: String = redis::from_redis_value(node.raw().say("CLUSTER INFO")).expect("text");
        text.contains(what)
    };
    for node in &nodes {
        eventually("it knows all", || {
            knows(node, "cluster_state:ok") && knows(node, "cluster_known_nodes:4")
        });
    }
    let id: String = redis::from_redis_value(nodes[0].raw().say("CLUSTER MYID")).expect("an id");
    let reply = nodes[3].raw().say(&format!("CLUSTER REPLICATE {id}"));
    assert_eq!(reply, Value::Okay);
    replica_counts(&nodes[0]);
    // Those who are to vote know it as well.
    for node in &nodes {
        eventually("it knows the replica", || {
            let nodes: String =
                redis::from_redis_value(node.raw().say("CLUSTER NODES")).expect("text");
            nodes.contains(&format!("slave {id}"))
        });
    }
    nodes
}

#[test]
fn a_node_of_a_cluster_that_was_replaced_during_a_stop_grants_to_nobody() {
    let nodes = cluster();
    let mut control = nodes[0].raw();
    let mut waiters = Vec::new();
    for n in 0..100 {
        if let Value::Int(_) = control.say(&format!("RLOCK.ACQUIRE k{n} a 1500")) {
            waiters.push(Waiter::new(&nodes[0], &format!("k{n}"), "b"));
        }
    }
    assert!(waiters.len() > 10);
    nodes[0].pause_process();
    eventually_within(Duration::from_secs(30), "it is replaced", || {
        nodes[3].info_field("replication", "role").as_deref() == Some("master")
    });
    pass(now_ms() + 1500);
    nodes[0].resume_process();
    for waiter in &mut waiters {
        match waiter.client.read() {
            Value::ServerError(_) => {}
            reply => panic!("{reply:?}"),
        }
    }
}

#[test]
fn a_master_whose_replicas_are_silent_after_a_stop_waits_for_them() {
    // The replica is there, says nothing, and is counted for ten seconds yet: so would
    // one be whose machine or network is gone.
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut waiters = waited_for(&server, 50);
    let mut held = Bound::with(&server, "w a 600");
    stop_and(&server, || replica.pause_process());
    assert_eq!(granted(&mut waiters, SOON), 0);
    // It cannot be renewed, and its lease is over.
    assert!(held.is_closed());
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
    crate::support::look::goes_free(&mut control, "k");
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
