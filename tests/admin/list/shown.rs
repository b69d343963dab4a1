//! What RLOCK.LIST tells of a holder.

use std::collections::BTreeMap;

use redis::Value;

use crate::support::{
    each, eventually, int_or_none, list, map, now_ms, pass, text, Ask, Server, Waiter,
};

use super::*;

#[test]
fn a_holder_is_shown_as_by_info_and_with_its_key() {
    let server = Server::start();
    let mut client = server.raw();
    let empty = Value::Array(vec![Value::BulkString(b"0".into()), Value::Array(vec![])]);
    assert_eq!(client.ask("RLOCK.LIST"), empty);
    client.token("RLOCK.ACQUIRE plain a 100000");
    client.token("RLOCK.ACQUIRE plain a 100000");
    client.token("RLOCK.ACQUIRE doc r1 100000 READ");
    client.token("RLOCK.ACQUIRE doc r2 200000 READ WATCHDOG");
    client.token("RLOCK.ACQUIRE book w 100000 WRITE WATCHDOG");
    client.token("RLOCK.ACQUIRE book w 100000 READ");
    client.int("PERSIST plain");
    let (_, mut maps) = page(client.ask("RLOCK.LIST"));
    assert_eq!(maps.len(), 5);
    for key in ["plain", "doc", "book"] {
        let info = client.map(&["RLOCK.INFO", key]);
        for mut holder in list(info["holders"].clone()).into_iter().map(map) {
            let is_it = |fields: &BTreeMap<String, Value>| {
                let same = |name: &str| fields[name] == holder[name];
                bytes(&fields["key"]) == key.as_bytes() && same("owner") && same("mode")
            };
            let at = maps.iter().position(is_it).expect("it is told");
            let mut fields = maps.remove(at);
            fields.remove("key");
            assert_eq!(fields.remove("presumed"), Some(Value::Int(0)));
            // Some ms lie between the two.
            for (name, sign) in [("remaining-ms", 1), ("held-ms", -1)] {
                let [told, is] = [&mut fields, &mut holder].map(|of| of.remove(name).unwrap());
                match (int_or_none(told), int_or_none(is)) {
                    (None, None) => {}
                    (Some(told), Some(is)) => {
                        assert!((0..10_000).contains(&((told - is) * sign)), "{name}");
                    }
                    other => panic!("{name}: {other:?}"),
                }
            }
            assert_eq!(fields, holder);
        }
    }
    assert_eq!(maps, []);
    client.map("HELLO 3");
    let Value::Array(parts) = client.ask("RLOCK.LIST MATCH plain") else {
        panic!("an array");
    };
    assert!(matches!(&parts[1], Value::Array(maps) if matches!(maps[..], [Value::Map(_)])));
}

/// `RELEASE`, `FORCE`, the end of a lease, `DEL`, and a hash that became something else.
#[test]
fn what_is_not_held_any_more_is_not_shown() {
    let server = Server::start_observed();
    let mut client = server.raw();
    for key in ["released", "forced", "deleted", "overwritten", "held"] {
        client.token(&format!("RLOCK.ACQUIRE {key} a 100000"));
    }
    client.token("RLOCK.ACQUIRE expired a 1");
    client.succeed(&[
        "RLOCK.RELEASE released a",
        "RLOCK.FORCE forced",
        "DEL deleted",
        "SET overwritten x",
        "RENAME held renamed",
    ]);
    pass(now_ms() + 10);
    assert_eq!(listed(&mut client, ""), "renamed=a");
    // Who only waits holds nothing.
    client.ok("SET other x");
    let waiter = Waiter::by(&server, "RLOCK.MACQUIRE 2 free renamed b 1000 BLOCK 0");
    assert_eq!(listed(&mut client, ""), "renamed=a");
    drop(waiter);
    // In the middle of a transaction too.
    let replies = client.succeed(&["MULTI", "DEL renamed", "RLOCK.LIST", "EXEC"]);
    let (_, maps) = page(list(replies[3].clone()).remove(1));
    assert_eq!(maps, []);
}

#[test]
fn the_locks_of_the_selected_database_are_shown() {
    let server = Server::start();
    let mut client = server.raw();
    for db in 0..2 {
        client.ok(&format!("SELECT {db}"));
        for number in 0..3 {
            client.token(&format!("RLOCK.ACQUIRE k{db}{number} o 100000"));
        }
    }
    assert_eq!(listed(&mut client, ""), "k10=o k11=o k12=o");
    let (cursor, _) = after(&mut client, b"0", "COUNT 1");
    client.ok("SELECT 0");
    assert_eq!(listed(&mut client, ""), "k00=o k01=o k02=o");
    let request = [b"RLOCK.LIST".as_slice(), b"CURSOR", &cursor];
    let line = client.error(&request);
    assert!(line.contains("begin again with CURSOR 0"), "{line}");
    // A listing goes with its database.
    client.ok("SWAPDB 0 1");
    assert_eq!(after(&mut client, &cursor, "").1.len(), 2);
    client.ok("SELECT 5");
    assert_eq!(listed(&mut client, ""), "");
    let line = client.error(&request);
    assert!(line.contains("begin again with CURSOR 0"), "{line}");
}

#[test]
fn it_changes_nothing_and_a_replica_knows_nothing() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut client = master.raw();
    client.token("RLOCK.ACQUIRE k o 100000");
    let (before, changes) = (client.state(b"k"), client.changes());
    assert_eq!(listed(&mut client, ""), "k=o");
    assert_eq!(client.state(b"k"), before);
    assert_eq!(client.changes(), changes);
    let mut other = replica.raw();
    eventually("the lock is there", || other.int("EXISTS k") == 1);
    assert_eq!(listed(&mut other, ""), "");
    // Promoted, it knows what it is asked about.
    other.ok("REPLICAOF NO ONE");
    other.token("RLOCK.ACQUIRE k o 100000");
    assert_eq!(listed(&mut other, ""), "k=o");
}

#[test]
fn command_docs_know_its_arguments() {
    let server = Server::start();
    let mut client = server.raw();
    let docs = map(client.map("COMMAND DOCS rlock.list")["rlock.list"].clone());
    let arguments: Vec<String> = list(docs["arguments"].clone())
        .into_iter()
        .map(|argument| {
            let fields = map(argument);
            let of = |name: &str| text(fields[name].clone());
            format!("{} {} {}", of("token"), of("name"), of("type"))
        })
        .collect();
    let expected = [
        "CURSOR cursor string",
        "MATCH pattern string",
        "OWNER prefix string",
        "HELD-LONGER ms integer",
        "COUNT n integer",
    ];
    assert_eq!(arguments, expected);
}

#[test]
fn what_somebody_made_of_a_lock_is_shown_as_it_is() {
    each(&["plain", "read", "write"], |way, server, client| {
        let mode = if way == "plain" { "" } else { way };
        client.token(&format!("RLOCK.ACQUIRE k o 100000 {mode}"));
        client.token(&format!("RLOCK.ACQUIRE k o 100000 {mode}"));
        let field = if way == "write" { "o:write" } else { "o" };
        client.int(&["HSET", "k", field, "7"]);
        let (_, maps) = page(client.ask("RLOCK.LIST"));
        assert_eq!(maps[0]["holds"], Value::Int(7));
        client.int(&["HDEL", "k", field]);
        client.int("HSET k mode x other 1 z 2");
        let (_, maps) = page(server.raw().ask("RLOCK.LIST"));
        assert_eq!(maps, []);
    });
}
