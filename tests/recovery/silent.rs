//! What only looks like a lock goes without a word, and what is no lock is not looked at.

use super::{expires_nothing, late, loaded_after, plain, presumed, soon, written};
use crate::support::{pass, Ask, Listener};

#[test]
fn an_applications_hash_ends_silently() {
    let until = soon();
    let lines = ["counter", "other"].map(|key| {
        let set = format!("HSET {key} hits 5");
        [set, format!("PEXPIREAT {key} {until}")].to_vec()
    });
    let server = loaded_after(&[], &lines.concat());
    let mut control = server.raw();
    presumed(&mut control, 2);
    expires_nothing(&mut control);
    let before = control.counters();
    let mut messages = Listener::patterns(&server, &["redisson*"]);
    let mut events = Listener::keyspace(&server, 0);
    control.int("HINCRBY counter hits 1");
    let changes = control.changes();
    pass(until + 1);
    presumed(&mut control, 0);
    let mut told = events.events();
    told.sort();
    let expected = [
        ("expired", "counter"),
        ("expired", "other"),
        ("hincrby", "counter"),
    ];
    let told: Vec<_> = told.iter().map(|(e, k)| (&e[..], &k[..])).collect();
    assert_eq!(told, expected);
    assert_eq!(messages.messages(), []);
    let mut after = control.counters();
    for name in [
        "rlock_recovery_presumed",
        "rlock_recovery_scanned",
        "rlock_memory_bytes",
    ] {
        let was = before[name];
        after.insert(name.to_owned(), was);
    }
    assert_eq!(after, before);
    // It was the server that took them away, and nobody wrote.
    assert!(control.changes() - changes <= 2);
}

#[test]
fn what_is_no_lock_is_left_alone() {
    let until = late();
    let expire = |key: &str| format!("PEXPIREAT {key} {until}");
    let mut lines = vec![
        "HSET endless someone 1".to_owned(),
        "SET text 1".to_owned(),
        expire("text"),
        "HSET words field text".to_owned(),
        expire("words"),
        "HSET many a 1 b 2".to_owned(),
        expire("many"),
        "HSET mode mode read".to_owned(),
        expire("mode"),
        "RPUSH list 1".to_owned(),
        expire("list"),
        "HSET gone someone 1".to_owned(),
        "PEXPIRE gone 1".to_owned(),
    ];
    lines.extend(plain("lock", until));
    lines.extend(written("rw", until));
    let server = loaded_after(&[], &lines);
    let mut control = server.raw();
    presumed(&mut control, 2);
    assert!(control.counter("rlock_recovery_scanned") >= 8);
}

/// Counted neither as a hit nor as a miss, and no reason to keep a key.
#[test]
fn a_walk_is_no_access() {
    let mut lines: Vec<String> = (0..500)
        .flat_map(|n| plain(&format!("k{n}"), late()))
        .collect();
    lines.push("CONFIG RESETSTAT".to_owned());
    let options = ["--maxmemory-policy", "allkeys-lfu", "--maxmemory", "1gb"];
    let server = loaded_after(&options, &lines);
    let mut control = server.raw();
    let count = |client: &mut crate::support::RawClient| client.int("OBJECT FREQ k7");
    presumed(&mut control, 500);
    for name in ["keyspace_hits", "keyspace_misses"] {
        let found = server.info_field("stats", name);
        assert_eq!(found.as_deref(), Some("0"), "{name}");
    }
    let before = count(&mut control);
    for _ in 0..5 {
        control.ok("CONFIG SET rlock.recovery-scan no");
        presumed(&mut control, 0);
        control.ok("CONFIG SET rlock.recovery-scan yes");
        presumed(&mut control, 500);
    }
    assert!(count(&mut control) <= before + 1);
}

/// From then on it is a lock as any other.
#[test]
fn a_command_that_finds_it_held_makes_it_known() {
    let until = soon();
    let lines = [
        plain("refused", until),
        plain("renewed", until),
        plain("untouched", until),
    ];
    let server = loaded_after(&[], &lines.concat());
    let mut control = server.raw();
    presumed(&mut control, 3);
    let mut events = Listener::keyspace(&server, 0);
    assert!(control.refused("RLOCK.ACQUIRE refused b 1000"));
    assert_eq!(control.int("RLOCK.RENEW renewed someone:1 300"), 1);
    presumed(&mut control, 1);
    pass(until + 1);
    presumed(&mut control, 0);
    let told = events.events();
    let ours = |key: &str| {
        let ours = told
            .iter()
            .filter(|(event, of)| event == "rlock.expired" && of == key);
        ours.count()
    };
    assert_eq!(["refused", "renewed", "untouched"].map(ours), [1, 1, 0]);
}
