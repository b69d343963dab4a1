//! Newer servers let fields of hashes run out, many in one go. What rlock does about it must not
//! come while the server is at it.

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
