//! A server that refuses writes on its own, for it cannot save or its cluster
//! is down, hands on nothing meanwhile, and all of it afterwards.

use std::fs;

use redis::Value;

use crate::support::{
    cluster, code, eventually, int, now_ms, pass, token, Ask, Bound, Listener, RawClient, Server,
    Waiter,
};

/// Lets the lease of `k` end while writes are refused with this code, and looks that
/// nothing comes of it before they are allowed again.
fn nothing_happens_meanwhile(server: &Server, shut: &str, open: &str, refusal: &str) {
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut waiter = Waiter::new(server, "k", "b");
    let mut over = Bound::with(server, "w a 600");
    let mut held = Bound::with(server, "l a 6000");
    let mut events = Listener::keyspace(server, 0);
    // In one write: the lease ends behind the gate.
    let replies = control.ask_all(&["PEXPIRE k 300", "PEXPIRETIME k", shut]);
    assert_eq!(replies[2], Value::Okay, "{shut}");
    eventually(
        "writes are refused",
        || matches!(control.ask("RLOCK.ACQUIRE k c 1"), Value::ServerError(error) if error.code() == refusal),
    );
    pass(int(replies[1].clone()).max(now_ms() + 600) + 300);
    // The server itself may send those away who wait; nobody is granted.
    let told = waiter.client.heard();
    let waits = told.is_none();
    if let Some(error) = told {
        assert_eq!(code(&error), refusal);
    }
    assert_eq!(events.count("rlock.expired", "k"), 0, "{refusal}");
    assert!(over.client.is_closed(), "its lease is over");
    // A PING is refused too by a server that cannot save.
    assert_eq!(held.client.client_id(), held.id);

    assert_eq!(control.ask(open), Value::Okay, "{open}");
    if waits {
        match waiter.client.read() {
            // On the last moment.
            error @ Value::ServerError(_) => assert_eq!(code(&error), refusal),
            granted => {
                token(granted);
                assert_eq!(control.hash("k"), "b=1");
            }
        }
    }
    let mut count = 0;
    eventually("the lease's end is told of", || {
        count += events.count("rlock.expired", "k");
        count == 1
    });
    // The watchdog goes on where it was.
    control.goes_to("l", "a exclusive 1");
    control.goes_free("w");
    let hold = control.only("l");
    assert_eq!(
        (hold.token, hold.watchdog),
        (Some(held.token), Some(held.id))
    );
    held.client.in_step();
    control.ask("RLOCK.RELEASE k b");
    assert_eq!(held.client.int("RLOCK.RELEASE l a"), 0);
    assert_eq!(events.count("rlock.expired", "k"), 0);
    server.alive();
}

fn cannot_save(server: &Server, control: &mut RawClient) {
    control.ok("CONFIG SET stop-writes-on-bgsave-error no");
    control.ask(&["CONFIG", "SET", "save", "3600 1000000"]);
    // A file cannot take the place of a directory.
    fs::create_dir(server.dir().join("dump.rdb")).expect("a directory");
    control.ask("BGSAVE");
    eventually("it cannot save", || {
        let status = server.info_field("persistence", "rdb_last_bgsave_status");
        status.as_deref() == Some("err")
    });
}

#[test]
fn a_server_that_cannot_save_hands_on_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    cannot_save(&server, &mut control);
    for _ in 0..2 {
        nothing_happens_meanwhile(
            &server,
            "CONFIG SET stop-writes-on-bgsave-error yes",
            "CONFIG SET stop-writes-on-bgsave-error no",
            "MISCONF",
        );
    }
}

#[test]
fn a_node_whose_cluster_is_down_hands_on_nothing() {
    let server = cluster();
    let mut control = server.raw();
    let names = ["k", "w", "l"].map(|key| control.int(&format!("CLUSTER KEYSLOT {key}")));
    let other = (0..).find(|slot| !names.contains(slot)).expect("a slot");
    nothing_happens_meanwhile(
        &server,
        &format!("CLUSTER DELSLOTS {other}"),
        &format!("CLUSTER ADDSLOTS {other}"),
        "CLUSTERDOWN",
    );
}
