//! Which locks RLOCK.LIST is asked for, and which the user may see.

use redis::Value;

use crate::support::{list, now_ms, pass, user, Ask, Random, Server};

use super::*;

#[test]
fn filters_go_together() {
    let server = Server::start();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE job:1 host1:a 100000");
    client.token("RLOCK.ACQUIRE job:2 host2:a 100000");
    client.token("RLOCK.ACQUIRE doc:1 host1:b 100000 READ");
    client.token("RLOCK.ACQUIRE doc:1 host2:b 100000 READ");
    // Somebody else's, whose age nobody knows.
    client.int("HSET job:3 host1:c 1");
    client.int("PEXPIRE job:3 100000");
    assert!(client.refused("RLOCK.ACQUIRE job:3 host2:a 1000"));
    pass(now_ms() + 1050);
    client.token("RLOCK.ACQUIRE job:4 host1:d 100000");
    for (words, expected) in [
        (
            "",
            "doc:1=host1:b doc:1=host2:b job:1=host1:a job:2=host2:a job:3=host1:c job:4=host1:d",
        ),
        (
            "MATCH job:*",
            "job:1=host1:a job:2=host2:a job:3=host1:c job:4=host1:d",
        ),
        ("match [a-d]oc:? owner host2:", "doc:1=host2:b"),
        ("OWNER host1:a", "job:1=host1:a"),
        ("OWNER ost", ""),
        ("MATCH job", ""),
        (
            "HELD-LONGER 1000",
            "doc:1=host1:b doc:1=host2:b job:1=host1:a job:2=host2:a",
        ),
        ("HELD-LONGER 100000", ""),
        ("MATCH job:* OWNER host1: HELD-LONGER 1000", "job:1=host1:a"),
    ] {
        for count in ["", " COUNT 1", " COUNT 1000"] {
            // Held since just now, on a slow machine too.
            client.release("job:4", "host1:d");
            client.token("RLOCK.ACQUIRE job:4 host1:d 100000");
            assert_eq!(
                listed(&mut client, &format!("{words}{count}")),
                expected,
                "{words}"
            );
        }
    }
}

/// On names and patterns of the few bytes that mean something.
#[test]
fn a_pattern_is_one_of_the_servers() {
    const BYTES: &[u8] = b"aabbcc*?[]^-\\";
    let server = Server::start();
    let mut client = server.raw();
    let mut random = Random::new(11);
    let mut word = |longest: usize| -> Vec<u8> {
        let length = random.below(longest + 1);
        (0..length)
            .map(|_| BYTES[random.below(BYTES.len())])
            .collect()
    };
    // No more than one page.
    for _ in 0..250 {
        // To the server `**` does not fit the empty name.
        let name = word(4);
        if !name.is_empty() {
            client.ask(&[b"RLOCK.ACQUIRE".as_slice(), &name, b"o", b"100000"]);
        }
    }
    for _ in 0..2000 {
        let pattern = word(7);
        let mut keys: Vec<_> = client
            .list(&[b"KEYS".as_slice(), &pattern])
            .iter()
            .map(bytes)
            .collect();
        let request = [
            b"RLOCK.LIST".as_slice(),
            b"COUNT",
            b"250",
            b"MATCH",
            &pattern,
        ];
        let maps = page(client.ask(&request)).1;
        let mut found: Vec<_> = maps.iter().map(|fields| held(fields).0).collect();
        keys.sort();
        found.sort();
        assert_eq!(found, keys, "{}", pattern.escape_ascii());
    }
}

#[test]
fn a_user_is_shown_the_keys_that_it_may_read() {
    let server = Server::start();
    let mut admin = server.raw();
    for key in ["a:1", "a:2", "b:1", "c:1", "d"] {
        admin.token(&format!("RLOCK.ACQUIRE {key} o 100000"));
    }
    let all = "a:1=o a:2=o b:1=o c:1=o d=o";
    for (rules, expected) in [
        ("+@all ~*", all),
        ("+@all allkeys", all),
        ("+@all ~a:*", "a:1=o a:2=o"),
        ("+@all ~a:1 ~d", "a:1=o d=o"),
        // To read, and not to write.
        ("+@all %R~a:* %W~b:* %RW~c:*", "a:1=o a:2=o c:1=o"),
        ("+@all", ""),
        ("+rlock.list ~b:*", "b:1=o"),
        ("+@all ~a:* (+get ~d)", "a:1=o a:2=o d=o"),
    ] {
        let mut worker = user(&server, rules);
        for count in ["", "COUNT 1", "COUNT 1000"] {
            assert_eq!(listed(&mut worker, count), expected, "{rules}");
        }
    }
    // What may not be read is not to be guessed at by a pattern, nor by a page that ends
    // there: it is looked at as any other.
    let mut worker = user(&server, "+@all ~a:*");
    assert_eq!(listed(&mut worker, "MATCH b:*"), "");
    let (_, number) = pages(&mut worker, "COUNT 1", |_| ());
    assert!((5..=6).contains(&number), "{number}");
    // A script runs as its caller, and so does a transaction.
    let script = "return redis.call('RLOCK.LIST', 'COUNT', '100')";
    let keys = |reply: Value| {
        let mut keys: Vec<_> = page(reply).1.iter().map(|fields| held(fields).0).collect();
        keys.sort();
        keys
    };
    let theirs = [b"a:1".to_vec(), b"a:2".to_vec()];
    assert_eq!(keys(worker.ask(&["EVAL", script, "0"])), theirs);
    assert_eq!(keys(admin.ask(&["EVAL", script, "0"])).len(), 5);
    let mut replies = worker.succeed(&["MULTI", "RLOCK.LIST COUNT 100", "EXEC"]);
    assert_eq!(keys(list(replies.remove(2)).remove(0)), theirs);
    assert_eq!(admin.texts("ACL LOG"), [] as [String; 0]);
}

#[test]
fn who_may_list_is_who_may_scan() {
    let server = Server::start();
    let mut nobody = user(&server, "~* -@all +get");
    assert!(nobody.denied("RLOCK.LIST"));
    if server.version().at_least(7, 2) {
        for category in ["read", "keyspace", "slow"] {
            let mut reader = user(&server, &format!("~* -@all +@{category}"));
            assert!(!reader.denied("RLOCK.LIST"), "{category}");
        }
        let mut careful = user(&server, "~* +@all -@dangerous -@admin");
        assert!(!careful.denied("RLOCK.LIST"));
    }
}
