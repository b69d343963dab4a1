//! Names of read/write locks and their owners are any bytes; and what a lease key
//! is called may be taken already, or belong to another slot.

use std::time::{Duration, Instant};

use redis::Value;

use crate::support::{
    both_ways, bulk, cluster, code, lease_key, list, map, token, Ask, RawClient, Server, Way,
};

/// The lease key, for names without a hash tag.
fn lease(key: &[u8], owner: &[u8]) -> Vec<u8> {
    [b"{", key, b"}:", owner, b":rwlock_timeout:1"].concat()
}

/// Goes through a lock's life under a name and an owner.
#[track_caller]
fn round_trip(client: &mut RawClient, key: &[u8], owner: &[u8]) {
    let acquire = |client: &mut RawClient, owner: &[u8], mode: &[u8]| {
        client.ask(&[b"RLOCK.ACQUIRE", key, owner, b"100000", mode])
    };
    let first = token(acquire(client, owner, b"READ"));
    let Value::Array(fields) = client.ask(&[b"HGETALL", key]) else {
        panic!("no hash");
    };
    let mut pairs: Vec<_> = fields.chunks(2).map(<[Value]>::to_vec).collect();
    pairs.sort_by_key(|pair| pair[0] != bulk("mode"));
    let expected = [[bulk("mode"), bulk("read")], [bulk(owner), bulk("1")]];
    assert_eq!(pairs, expected, "{owner:?}");
    let found = client.ask(&[b"GET", lease(key, owner).as_slice()]);
    assert_eq!(found, bulk(key), "{owner:?}");

    token(acquire(client, b"another", b"READ"));
    assert_eq!(acquire(client, owner, b"WRITE"), Value::Nil);
    let release: [&[u8]; 4] = [b"RLOCK.RELEASE", key, b"another", b"READ"];
    assert_eq!(client.int(&release), 0);
    assert!(token(acquire(client, owner, b"WRITE")) > first);
    let field = [owner, b":write"].concat();
    let count = client.ask(&[b"HGET", key, field.as_slice()]);
    assert_eq!(count, bulk("1"));
    let info = client.map(&[b"RLOCK.INFO", key]);
    let holders = list(info["holders"].clone());
    assert_eq!(holders.len(), 2);
    for holder in holders {
        assert_eq!(map(holder)["owner"], bulk(owner));
    }
    for mode in [b"WRITE".as_slice(), b"READ"] {
        let renew = [b"RLOCK.RENEW", key, owner, b"50000", mode];
        assert_eq!(client.int(&renew), 1);
        let release = [b"RLOCK.RELEASE", key, owner, mode];
        assert_eq!(client.int(&release), 0);
    }
    assert_eq!(client.int("DBSIZE"), 0, "{key:?} {owner:?}");
}

#[test]
fn keys_and_owners_are_any_bytes() {
    let server = Server::start();
    let mut client = server.raw();
    let no_brace: Vec<u8> = (0..=255).filter(|byte| *byte != b'{').collect();
    let all: Vec<u8> = (0..=255).collect();
    let longest = [0xff; 512];
    let keys: [&[u8]; 7] = [b"", b"\0", b"\r\n", b" ", b"*", &no_brace, b"job\0more"];
    let owners: [&[u8]; 12] = [
        b"\0",
        b" ",
        b"\r\n",
        b"1",
        b"-1",
        &all,
        &longest,
        b"READ",
        b"mode:",
        b"write",
        b"a:rwlock_timeout:1",
        b"{tag}",
    ];
    for key in keys {
        round_trip(&mut client, key, b"alice");
    }
    for owner in owners {
        round_trip(&mut client, b"doc", owner);
    }
    round_trip(&mut client, &no_brace, &all);
    server.alive();
}

#[test]
fn owners_that_are_alike_are_not_the_same() {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["a", "a:1", "a:", "a:rwlock_timeout:1", "read", "write", "A"] {
        client.take_read("doc", owner);
    }
    let reader = client.error("RLOCK.RELEASE doc rea READ");
    assert!(reader.starts_with("NOTHELD "), "{reader}");
    for owner in ["a", "a:1", "a:", "a:rwlock_timeout:1", "read", "write"] {
        assert_eq!(client.int(&format!("RLOCK.RELEASE doc {owner} READ")), 0);
    }
    assert_eq!(client.hash("doc"), "A=1 mode=read");
    assert_eq!(client.int("DBSIZE"), 2);
}

/// With a hash tag in them, two names and two owners can meet in one lease key.
#[test]
fn a_lease_key_of_another_lock_is_not_taken() {
    let server = Server::start();
    let mut client = server.raw();
    let met = "{x}a:b:c:rwlock_timeout:1";
    assert_eq!(lease_key("{x}a", "b:c", 1), met);
    assert_eq!(lease_key("{x}a:b", "c", 1), met);
    client.take_read("{x}a", "b:c");
    let (before, changes) = (client.everything(), client.changes());
    for more in ["", "ONCE", "BLOCK 0"] {
        let line = client.error(&format!("RLOCK.ACQUIRE {{x}}a:b c 1000 READ {more}"));
        assert!(line.starts_with("WRONGTYPE "), "{line}");
    }
    assert_eq!(client.everything(), before);
    assert_eq!(client.changes(), changes);
    // Others may read there, and this one may write.
    client.take_read("{x}a:b", "d");
    client.int("RLOCK.RELEASE {x}a:b d READ");
    client.take_write("{x}a:b", "c");
    let line = client.error("RLOCK.ACQUIRE {x}a:b c 1000 READ");
    assert!(line.starts_with("WRONGTYPE "), "{line}");
    client.int("RLOCK.RELEASE {x}a:b c WRITE");
    // When it is gone, the way is free.
    client.int("RLOCK.RELEASE {x}a b:c READ");
    client.take_read("{x}a:b", "c");
    assert_eq!(client.text(&format!("GET {met}")), "{x}a:b");
}

#[test]
fn what_is_no_lease_key_is_not_overwritten() {
    let server = Server::start();
    let mut client = server.raw();
    for put in [
        "SET KEY data",
        "SET KEY 2",
        "SET KEY doc2",
        "RPUSH KEY doc",
        "HSET KEY doc 1",
    ] {
        for number in [1, 2] {
            println!("{put} {number}");
            client.ok("FLUSHALL");
            if number == 2 {
                client.take_read("doc", "alice");
            }
            client.ask(&put.replace("KEY", &lease_key("doc", "alice", number)));
            let (before, changes) = (client.everything(), client.changes());
            for more in ["", "BLOCK 0"] {
                let line = client.error(&format!("RLOCK.ACQUIRE doc alice 1000 READ {more}"));
                assert!(line.starts_with("WRONGTYPE "), "{put}: {line}");
            }
            assert_eq!(client.everything(), before, "{put}");
            assert_eq!(client.changes(), changes, "{put}");
            client.take_read("doc", "bob");
        }
    }
    // Redisson's and one's own of before are.
    for put in [
        "SET KEY 1",
        "SET KEY 1 PX 5",
        "SET KEY doc",
        "SET KEY doc PX 50000",
    ] {
        client.ok("FLUSHALL");
        client.ok(&put.replace("KEY", &lease_key("doc", "alice", 1)));
        client.int("RLOCK.ACQUIRE doc alice 1000 READ");
        let ends = client.deadline(&lease_key("doc", "alice", 1));
        assert_eq!(ends, client.deadline("doc"), "{put}");
    }
}

both_ways!(a_waiter_whose_lease_key_was_taken_gets_the_error_and_the_next_the_lock);
fn a_waiter_whose_lease_key_was_taken_gets_the_error_and_the_next_the_lock(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    let mut reader = by.read(&server, "doc", "a");
    let mut next = by.read(&server, "doc", "b");
    client.ok(&format!("SET {} data", lease_key("doc", "a", 1)));
    client.int("RLOCK.RELEASE doc alice WRITE");
    assert_eq!(code(&reader.end()), "WRONGTYPE");
    reader.client.in_step();
    next.token();
    assert_eq!(client.hash("doc"), "b=1 mode=read");
    let kept = client.text(&format!("GET {}", lease_key("doc", "a", 1)));
    assert_eq!(kept, "data");
}

both_ways!(in_a_cluster_a_lease_key_lies_in_the_slot_of_its_lock);
fn in_a_cluster_a_lease_key_lies_in_the_slot_of_its_lock(by: Way) {
    let server = cluster();
    let mut client = server.raw();
    for key in ["doc", "{acct}:7", "job:{7}", "a{b}c{d}"] {
        client.take_read(key, "alice");
        client.take_read(key, "alice");
        let slot = client.int(&format!("CLUSTER KEYSLOT {key}"));
        for number in [1, 2] {
            let lease = lease_key(key, "alice", number);
            assert_eq!(client.int(&format!("CLUSTER KEYSLOT {lease}")), slot);
            assert_eq!(client.int(&format!("EXISTS {lease}")), 1);
        }
        let mut writer = by.with(&server, &format!("{key} w 100000 WRITE BLOCK 0"));
        assert_eq!(
            client.int(&format!("RLOCK.RELEASE {key} alice READ ALL")),
            0
        );
        writer.token();
        assert_eq!(client.int(&format!("RLOCK.RELEASE {key} w WRITE")), 0);
        client.nothing_left(key);
    }
}

#[test]
fn in_a_cluster_reading_is_refused_where_a_lease_key_would_lie_elsewhere() {
    let server = cluster();
    let mut client = server.raw();
    // The first three have a brace and no hash tag; the last has a tag of another
    // text once it stands in braces.
    for key in ["a{b", "a{}b", "{}", "job}"] {
        let lease = lease_key(key, "alice", 1);
        let elsewhere = client.int(&format!("CLUSTER KEYSLOT {lease}"));
        assert_ne!(client.int(&format!("CLUSTER KEYSLOT {key}")), elsewhere);
        for more in ["", "ONCE", "BLOCK 0"] {
            let line = client.error(&format!("RLOCK.ACQUIRE {key} alice 1000 READ {more}"));
            assert!(line.starts_with("ERR "), "{line}");
        }
        assert_eq!(client.int("DBSIZE"), 0);
        // A writer needs none, and keeps its lock when it may not read.
        client.take_write(key, "alice");
        let line = client.error(&format!("RLOCK.ACQUIRE {key} alice 1000 READ"));
        assert!(line.starts_with("ERR "), "{line}");
        assert_eq!(client.mode(key), "write");
        assert_eq!(client.waiters(key), 0);
        assert_eq!(client.int(&format!("RLOCK.RELEASE {key} alice WRITE")), 0);
        client.int(&format!("RLOCK.ACQUIRE {key} alice 1000"));
        client.int(&format!("RLOCK.RELEASE {key} alice"));
    }
    // Outside a cluster there are no slots.
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("a{b", "alice");
    assert_eq!(client.int("RLOCK.RELEASE a{b alice READ"), 0);
    client.nothing_left("a{b");
}

/// Such a name can be read as that of a lease key of 510 locks, all of them this long. To
/// look each of them up takes a hundred times as long as all else that is done.
#[test]
fn a_long_name_full_of_colons_is_no_burden() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE held o 3600000");
    client.int("RLOCK.ACQUIRE doc o 3600000 READ");
    let long = "x".repeat(1 << 20);
    let colons = format!("{}o:rwlock_timeout:1", ":".repeat(510));
    let names = [
        format!("{{{long}{colons}"),
        format!("{long}{colons}"),
        format!("{long}{}", "o".repeat(colons.len())),
    ];
    // The least counts: a busy machine makes single ones longer.
    let mut took = [Duration::MAX; 3];
    for _ in 0..20 {
        for (name, took) in names.iter().zip(&mut took) {
            let since = Instant::now();
            client.ok(&["SET", name, "1", "PX", "3600000"]);
            assert_eq!(client.int(&["DEL", name]), 1);
            *took = since.elapsed().min(*took);
        }
    }
    let [one, other, plain] = took;
    assert!(one < 12 * plain && other < 12 * plain, "{took:?}");
    assert_eq!(client.info("doc").holders.len(), 1);
}
