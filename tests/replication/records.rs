//! What is written while nobody keeps a record of it is not replicated. Whoever keeps
//! one from some moment on, a replica or the AOF, has every lock all the same.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::Value;

use crate::support::{eventually, Ask, Over, RawClient, Server};

/// Locks that come and go: half of them are held at any time.
const LOCKS: usize = 20;

fn states(client: &mut RawClient) -> Vec<[Value; 3]> {
    (0..LOCKS)
        .map(|i| client.state(format!("lock:{i}").as_bytes()))
        .collect()
}

#[track_caller]
fn same(master: &Server, replica: &Server) {
    let expected = states(&mut master.raw());
    eventually("the replica has every lock", || {
        states(&mut replica.raw()) == expected
    });
}

/// Takes and frees locks without a pause while something goes on.
fn meanwhile<T>(server: &Server, act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.raw();
            let mut turn = 0;
            while !over.load(Ordering::SeqCst) {
                client.int(&format!("RLOCK.ACQUIRE lock:{} o 3600000", turn % LOCKS));
                if turn >= LOCKS / 2 {
                    let other = (turn - LOCKS / 2) % LOCKS;
                    client.int(&format!("RLOCK.RELEASE lock:{other} o"));
                }
                turn += 1;
            }
        });
        let _over = Over(&over);
        act()
    })
}

#[test]
fn a_replica_that_comes_between_writes_has_every_lock() {
    for diskless in ["yes", "no"] {
        let master = Server::start_with(&["--repl-diskless-sync", diskless]);
        let mut client = master.raw();
        for i in 0..LOCKS {
            client.int(&format!("RLOCK.ACQUIRE lock:{i} o 3600000"));
            client.int(&format!("RLOCK.RELEASE lock:{i} o"));
        }
        let replica = meanwhile(&master, || {
            let replica = Server::start_replica_of(&master);
            master.counts_its_replica();
            replica
        });
        same(&master, &replica);
    }
}

#[test]
fn a_replica_that_waits_to_be_sent_everything_has_what_is_written_meanwhile() {
    let wait = ["--repl-diskless-sync", "yes"];
    let delay = ["--repl-diskless-sync-delay", "2"];
    let master = Server::start_with(&[wait, delay].concat());
    let mut client = master.raw();
    for i in 0..4 {
        client.int(&format!("RLOCK.ACQUIRE lock:{i} o 3600000"));
    }
    let port = master.port().to_string();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &port]);
    eventually("the replica asks for everything", || {
        client.text("INFO replication").contains("slave0:")
    });
    client.int("RLOCK.ACQUIRE lock:5 o 3600000");
    client.int("RLOCK.RELEASE lock:0 o");
    client.ok("MULTI");
    client.text("RLOCK.RELEASE lock:1 o");
    client.text("RLOCK.ACQUIRE lock:1 other 3600000");
    client.ask("EXEC");
    let script = "return redis.call('RLOCK.RELEASE', 'lock:2', 'o')";
    client.ask(&["EVAL", script, "0"]);
    client.int("RLOCK.RENEW lock:3 o 20");
    let granted = client.int("RLOCK.ACQUIRE lock:3 other 3600000 BLOCK 0");
    assert!(granted > 0);
    master.counts_its_replica();
    client.int("RLOCK.ACQUIRE lock:6 o 3600000");
    same(&master, &replica);
    master.alive();
    replica.alive();
}

#[test]
fn an_aof_that_is_switched_on_between_writes_has_every_lock() {
    let server = Server::start();
    let mut client = server.raw();
    meanwhile(&server, || {
        client.ok("CONFIG SET appendonly yes");
        eventually("the AOF is written", || {
            let info = client.text("INFO persistence");
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
    });
    let before = states(&mut client);
    client.ok("DEBUG LOADAOF");
    assert_eq!(states(&mut client), before);
}

#[test]
fn a_replica_that_was_away_gets_what_was_written_meanwhile() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let mut client = master.raw();
    replica.pause_process();
    client.int("CLIENT KILL TYPE replica");
    // After a fork it is asked again who keeps a record: nobody is attached.
    eventually("a save begins", || {
        let reply = client.ask("BGSAVE");
        matches!(reply, Value::SimpleString(text) if text == "Background saving started")
    });
    client.int("RLOCK.ACQUIRE lock:0 o 3600000");
    assert!(client
        .text("INFO replication")
        .contains("connected_slaves:0"));
    replica.resume_process();
    same(&master, &replica);
    assert!(client.text("INFO stats").contains("sync_partial_ok:1"));
}

#[test]
fn a_master_that_was_started_again_hands_on_what_it_wrote_before_its_replica_came() {
    let mut master = Server::start();
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let mut client = master.raw();
    client.int("RLOCK.ACQUIRE lock:0 o 3600000");
    same(&master, &replica);
    replica.pause_process();
    eventually("it is saved", || client.ask("SAVE") == Value::Okay);
    drop(client);
    master.kill();
    master.start_again();
    let mut client = master.raw();
    client.int("RLOCK.ACQUIRE lock:1 o 3600000");
    client.int("RLOCK.RELEASE lock:0 o");
    replica.resume_process();
    same(&master, &replica);
    assert!(client.text("INFO stats").contains("sync_partial_ok:1"));
}

#[test]
fn a_replica_that_was_promoted_hands_on_what_it_writes() {
    let old = Server::start_with(&["--repl-ping-replica-period", "1"]);
    let new = Server::start();
    let mut client = new.raw();
    client.int("RLOCK.ACQUIRE lock:0 o 3600000");
    client.ok(&format!("REPLICAOF 127.0.0.1 {}", old.port()));
    // A PING that is sent after the promotion would put the old master ahead of the new one.
    // After its first it sends the next in an hour.
    let sent = || old.info_field("replication", "master_repl_offset");
    eventually("a PING is sent", || sent().is_some_and(|sent| sent != "0"));
    old.raw().ok("CONFIG SET repl-ping-replica-period 3600");
    eventually("it is in sync", || {
        new.info_field("replication", "master_link_status")
            .as_deref()
            == Some("up")
            && new.info_field("replication", "slave_repl_offset") == sent()
    });
    assert_eq!(client.int("EXISTS lock:0"), 0);
    client.ok("REPLICAOF NO ONE");
    client.int("RLOCK.ACQUIRE lock:1 o 3600000");
    old.raw().ok(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
    same(&new, &old);
    assert!(client.text("INFO stats").contains("sync_partial_ok:1"));
}

#[test]
fn a_replica_that_begins_with_a_saved_file_gets_what_was_written_since() {
    let wait = ["--repl-diskless-sync", "yes"];
    let delay = ["--repl-diskless-sync-delay", "3600"];
    let master = Server::start_with(&[wait, delay].concat());
    let mut client = master.raw();
    client.int("RLOCK.ACQUIRE lock:0 o 3600000");
    // There is a backlog from now on, though the replica goes before anything is forked.
    let port = master.port().to_string();
    let mut replica = Server::start_with(&["--replicaof", "127.0.0.1", &port]);
    let mut info = |line| {
        eventually(line, || client.text("INFO replication").contains(line));
    };
    info("repl_backlog_active:1");
    replica.kill();
    info("connected_slaves:0");
    client.ok("SAVE");
    let file = |server: &Server| server.dir().join("dump.rdb");
    fs::copy(file(&master), file(&replica)).expect("copied");
    client.int("RLOCK.RELEASE lock:0 o");
    client.int("RLOCK.ACQUIRE lock:1 o 3600000");
    replica.start_again();
    same(&master, &replica);
    assert!(client.text("INFO stats").contains("sync_partial_ok:1"));
}

#[test]
fn a_write_of_which_nobody_keeps_a_record_counts_for_the_save_points() {
    let server = Server::start();
    let mut client = server.raw();
    let mut before = client.changes();
    for request in [
        "RLOCK.ACQUIRE job alice 60000",
        "RLOCK.ACQUIRE job alice 60000",
        "RLOCK.RENEW job alice 90000",
        "RLOCK.RELEASE job alice ALL",
    ] {
        client.int(request);
        let now = client.changes();
        assert!(now > before, "{request}");
        before = now;
    }
}
