//! Newer servers let fields of hashes run out, many in one go. What rlock does about it must not
//! come while the server is at it.

use redis::Value;

use crate::support::{eventually, now_ms, Ask, Server, Way};

#[test]
fn locks_whose_fields_run_out_together_go_to_who_waits_for_two_of_them() {
    let server = Server::start();
    if !server.version().ends_fields() {
        return;
    }
    let mut client = server.raw();
    let names: Vec<String> = (0..12).map(|i| format!("k{i}")).collect();
    for name in &names {
        client.int(&format!("RLOCK.ACQUIRE {name} a 60000"));
    }
    let pairs = names.iter().zip(names.iter().cycle().skip(1));
    let mut waiters: Vec<_> = pairs
        .enumerate()
        .map(|(i, (one, other))| {
            Way::Block.many(&server, &format!("{one} {other}"), &format!("w{i}"))
        })
        .collect();
    let at = now_ms() + 300;
    for name in &names {
        client.list(&format!("HPEXPIREAT {name} {at} FIELDS 1 a"));
    }
    for pool in ["p0", "p1"] {
        for owner in ["x", "y"] {
            client.take_permits(pool, owner, "LIMIT 3");
            client.list(&format!("HPEXPIREAT {pool} {at} FIELDS 1 {owner}"));
        }
        // The server goes on keeping an eye on it.
        client.list(&format!("HPEXPIREAT {pool} {} FIELDS 1 mode", at + 600_000));
    }
    for (i, waiter) in waiters.iter_mut().enumerate() {
        waiter.token();
        let pair = format!("{} {}", names[i], names[(i + 1) % names.len()]);
        assert_eq!(client.int(&format!("RLOCK.MRELEASE 2 {pair} w{i}")), 2);
    }
    for pool in ["p0", "p1"] {
        eventually("nobody has permits", || {
            client.int(&format!("EXISTS {pool}")) == 0
        });
    }
}

#[test]
fn a_count_takes_the_end_of_a_field_away_at_replicas_too() {
    let master = Server::start();
    if !master.version().ends_fields() {
        return;
    }
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let mut client = master.raw();
    let mut copy = replica.raw();
    for (mode, more, field) in [
        ("", "RLOCK.ACQUIRE job a 60000", "a"),
        ("", "RLOCK.RELEASE job a", "a"),
        ("READ", "RLOCK.ACQUIRE job a 60000 READ", "a"),
        ("WRITE", "RLOCK.RELEASE job a WRITE", "a:write"),
    ] {
        client.int("DEL job");
        client.int(&format!("RLOCK.ACQUIRE job a 60000 {mode}"));
        client.int(&format!("RLOCK.ACQUIRE job a 60000 {mode}"));
        client.list(&format!("HPEXPIRE job 600000 FIELDS 1 {field}"));
        client.int(more);
        let held = client.hash("job");
        eventually("the replica is the same", || copy.hash("job") == held);
        let ends = format!("HPTTL job FIELDS 1 {field}");
        let ends = [client.list(&ends), copy.list(&ends)];
        assert!(
            ends.iter().all(|ends| *ends == [Value::Int(-1)]),
            "{more}: {ends:?}"
        );
    }
}
