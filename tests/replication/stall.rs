//! A server that stood still does nothing on its own until it could learn what
//! happened meanwhile: whether it was replaced, and whether its replicas are there.

use std::time::Duration;

use redis::Value;

use crate::support::{
    eventually, eventually_within, now_ms, pair, pass, token, Ask, Bound, RawClient, Server, Waiter,
};

/// Longer than any server needs to have served what is due.
const SOON: Duration = Duration::from_millis(1500);

const STOP: i64 = 2500;

/// Locks that end during the stop, each with a waiter.
pub fn waited_for(server: &Server, count: usize) -> Vec<Waiter> {
    let mut control = server.raw();
    let waiters = (0..count).map(|n| {
        control.token(&format!("RLOCK.ACQUIRE k{n} a 1500"));
        Waiter::new(server, &format!("k{n}"), "b")
    });
    waiters.collect()
}

/// How many of them the server has granted their lock.
pub fn granted(waiters: &mut [Waiter], within: Duration) -> usize {
    pass(now_ms() + within.as_millis() as i64);
    let mut count = 0;
    for waiter in waiters {
        if let Some(reply) = waiter.client.heard() {
            count += usize::from(matches!(reply, Value::Int(_)));
        }
    }
    count
}

fn all_granted(waiters: &mut [Waiter]) {
    let woken = now_ms();
    for waiter in waiters {
        waiter.token();
    }
    println!("granted {} ms after waking", now_ms() - woken);
}

fn stop_and(server: &Server, meanwhile: impl FnOnce()) {
    let stopped = now_ms();
    server.pause_process();
    meanwhile();
    pass(stopped + STOP);
    server.resume_process();
}

fn promote(replica: &Server) {
    replica.raw().ok("REPLICAOF NO ONE");
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
        assert_eq!(control.hash(&key), "");
        assert_eq!(control.waiters(&key), 1, "{key}");
    }
    // The new one grants.
    let taken = replica.raw().ask("RLOCK.ACQUIRE k0 c 1000");
    assert!(matches!(taken, Value::Int(_)), "{taken:?}");
}

/// A client's own command goes by the server's rule, and by no more than that.
#[test]
fn nor_does_it_for_a_command_that_came_during_the_stop() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut others: Vec<RawClient> = (0..20).map(|_| server.raw()).collect();
    others[0].token("RLOCK.ACQUIRE other o 60000");
    let mut holders = Vec::new();
    let mut waiters: Vec<Waiter> = (0..20)
        .map(|n| {
            let mut holder = server.raw();
            holder.token(&format!("RLOCK.ACQUIRE w{n} a 60000 WATCHDOG"));
            holders.push(holder);
            Waiter::new(&server, &format!("w{n}"), "b")
        })
        .collect();
    stop_and(&server, || {
        holders.into_iter().for_each(RawClient::close);
        for other in &mut others {
            other.send("RLOCK.RENEW other o 60000");
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
        node.raw().ok(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
    }
    for (epoch, node) in nodes.iter().enumerate() {
        let epoch = format!("CLUSTER SET-CONFIG-EPOCH {}", epoch + 1);
        node.raw().ok(&epoch);
        let meet = format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].port());
        node.raw().ok(&meet);
    }
    let knows = |node: &Server, what: &str| node.raw().text("CLUSTER INFO").contains(what);
    for node in &nodes {
        eventually("it knows all", || {
            knows(node, "cluster_state:ok") && knows(node, "cluster_known_nodes:4")
        });
    }
    let id = nodes[0].raw().text("CLUSTER MYID");
    nodes[3].raw().ok(&format!("CLUSTER REPLICATE {id}"));
    nodes[0].counts_its_replica();
    // Those who are to vote know it as well.
    for node in &nodes {
        eventually("it knows the replica", || {
            let nodes = node.raw().text("CLUSTER NODES");
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
        if let Value::Int(_) = control.ask(&format!("RLOCK.ACQUIRE k{n} a 1500")) {
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
    assert!(held.client.is_closed());
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
        all_granted(&mut waiters);
        let mut control = server.raw();
        let mut copy = replica.raw();
        for n in 0..50 {
            let key = format!("k{n}");
            eventually("the replica has it", || copy.hash(&key) == "b=1");
            assert_eq!(control.int(&format!("RLOCK.RELEASE {key} b")), 0);
        }
    }
    assert!(!replica.log().contains("== CRITICAL"), "{}", replica.log());
}

#[test]
fn without_replicas_grants_go_on_once_the_cron_has_run() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut waiters = waited_for(&server, 50);
    stop_and(&server, || ());
    all_granted(&mut waiters);
}

#[test]
fn a_slow_command_is_a_stall_too() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut control = server.raw();
    let sleep = format!("DEBUG SLEEP {}", STOP as f64 / 1000.0);
    let mut waiters = waited_for(&server, 20);
    let mut other = server.raw();
    control.send(&sleep);
    promote(&replica);
    assert_eq!(control.read(), Value::Okay);
    assert_eq!(granted(&mut waiters, SOON), 0);
    assert_eq!(other.int("EXISTS k1"), 0, "its lease is over");
}

#[test]
fn holds_under_watchdogs_are_renewed_before_leases_end_once_it_has_learned() {
    let (server, _replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 600");
    let mut next = Waiter::new(&server, "k", "b");
    stop_and(&server, || ());
    control.goes_to("k", "a exclusive 1");
    let hold = control.only("k");
    assert_eq!(
        (hold.token, hold.watchdog),
        (Some(held.token), Some(held.id))
    );
    held.client.in_step();
    pass(now_ms() + 1000);
    held.client.in_step();
    next.still_waits();
    assert_eq!(held.client.int("RLOCK.RELEASE k a"), 0);
    next.token();
}

#[test]
fn a_watchdog_hold_of_a_master_that_was_replaced_is_closed() {
    let (server, replica) = pair(&["--min-replicas-to-write", "1"]);
    let mut over = Bound::with(&server, "k a 600");
    let mut long = Bound::with(&server, "long a 100000");
    stop_and(&server, || promote(&replica));
    assert!(over.client.is_closed());
    long.client.in_step();
    let mut control = server.raw();
    control.ok("CONFIG SET min-replicas-to-write 0");
    control.goes_free("k");
}

#[test]
fn a_clients_own_command_follows_the_servers_rule() {
    let server = Server::start();
    let mut holder_of = server.raw();
    holder_of.token("RLOCK.ACQUIRE k a 100000");
    let mut next = Waiter::new(&server, "k", "b");
    let mut other = server.raw();
    other.ask("PING");
    stop_and(&server, || {
        holder_of.send("RLOCK.RELEASE k a");
        other.send("RLOCK.ACQUIRE free c 100000");
    });
    assert_eq!(holder_of.read(), Value::Int(0));
    next.token();
    token(other.read());
    let mut control: RawClient = server.raw();
    assert!(control.ends("k") > now_ms());
}
