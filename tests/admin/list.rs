//! RLOCK.LIST: which locks are held, page by page.

use std::collections::BTreeMap;

use redis::Value;

use crate::support::{
    cluster, each, eventually, int_or_none, list, map, now_ms, pass, text, user, Ask, Random,
    RawClient, Request, Server, Waiter,
};

/// One holder: its key, its owner, its mode.
type Held = (Vec<u8>, Vec<u8>, String);

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::BulkString(bytes) => bytes.clone(),
        other => panic!("no text: {other:?}"),
    }
}

/// A reply: the cursor, and the maps.
#[track_caller]
fn page(reply: Value) -> (Vec<u8>, Vec<BTreeMap<String, Value>>) {
    let mut parts = list(reply);
    assert_eq!(parts.len(), 2, "{parts:?}");
    let maps = list(parts.remove(1)).into_iter().map(map).collect();
    (bytes(&parts[0]), maps)
}

fn held(fields: &BTreeMap<String, Value>) -> Held {
    let names: Vec<_> = fields.keys().map(String::as_str).collect();
    let all = [
        "held-ms",
        "holds",
        "key",
        "mode",
        "owner",
        "presumed",
        "remaining-ms",
        "token",
        "watchdog",
    ];
    assert_eq!(names, all);
    let mode = text(fields["mode"].clone());
    (bytes(&fields["key"]), bytes(&fields["owner"]), mode)
}

/// A page behind this cursor, with these words: the next cursor, and who is told.
#[track_caller]
fn after(client: &mut RawClient, cursor: &[u8], words: &str) -> (Vec<u8>, Vec<Held>) {
    let mut request = vec![b"RLOCK.LIST".to_vec(), b"CURSOR".to_vec(), cursor.to_vec()];
    request.extend(words.args());
    let (next, maps) = page(client.ask(&request));
    (next, maps.iter().map(held).collect())
}

/// All pages, with something done behind each; and how many there were.
#[track_caller]
fn pages(client: &mut RawClient, words: &str, mut then: impl FnMut(usize)) -> (Vec<Held>, usize) {
    let (mut cursor, mut all) = (b"0".to_vec(), Vec::new());
    for number in 1.. {
        let (next, found) = after(client, &cursor, words);
        all.extend(found);
        if next == b"0" {
            return (all, number);
        }
        then(number);
        cursor = next;
    }
    unreachable!()
}

/// The keys and owners of all pages, in order, as one would write them: `a=x b=y`.
#[track_caller]
fn listed(client: &mut RawClient, words: &str) -> String {
    let (all, _) = pages(client, words, |_| ());
    let line = |(key, owner, _): &Held| format!("{}={}", key.escape_ascii(), owner.escape_ascii());
    let mut all: Vec<_> = all.iter().map(line).collect();
    all.sort();
    all.join(" ")
}

#[test]
fn a_holder_is_told_as_by_info_and_with_its_key() {
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
fn what_is_not_held_any_more_is_not_told() {
    let server = Server::start();
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
fn what_is_held_all_the_time_comes_once_whatever_else_comes_and_goes() {
    let server = Server::start();
    let (mut client, mut other) = (server.raw(), server.raw());
    const STAY: usize = 600;
    const MOVE: usize = 900;
    let take = |name: &str, number: usize| format!("RLOCK.ACQUIRE {name}:{number} o 100000");
    let stay: Vec<String> = (0..STAY).map(|number| take("stay", number)).collect();
    other.succeed(&stay);
    let moving: Vec<String> = (0..MOVE).map(|number| take("move", number)).collect();
    for count in [3, 50, 1000] {
        let mut turn = 0;
        let (all, _) = pages(&mut client, &format!("COUNT {count}"), |number| {
            // Some come, and some go.
            turn += 1;
            let at = (number * 37) % (MOVE - 40);
            let requests: Vec<String> = (at..at + 40)
                .map(|other| match turn % 2 {
                    0 => format!("RLOCK.RELEASE move:{other} o"),
                    _ => moving[other].clone(),
                })
                .collect();
            other.ask_all(&requests);
        });
        let mut times = BTreeMap::new();
        for (key, _, _) in all {
            *times.entry(key).or_insert(0) += 1;
        }
        for number in 0..STAY {
            let key = format!("stay:{number}").into_bytes();
            assert_eq!(times.get(&key), Some(&1), "COUNT {count}: {number}");
        }
        let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "COUNT {count}: {twice:?}");
    }
}

#[test]
fn many_readers_of_one_lock_go_over_several_pages() {
    let server = Server::start();
    let (mut client, mut other) = (server.raw(), server.raw());
    let read = |number: usize| format!("RLOCK.ACQUIRE doc r{number:03} 100000 READ");
    let stay: Vec<String> = (0..100).step_by(2).map(read).collect();
    other.succeed(&stay);
    for key in ["a", "z"] {
        other.token(&format!("RLOCK.ACQUIRE {key} o 100000"));
    }
    let (all, number) = pages(&mut client, "COUNT 7", |number| {
        let reader = number * 14 + 1;
        other.ask(&read(reader));
        other.ask(&format!("RLOCK.RELEASE doc r{:03} READ", number * 14 + 3));
        other.ask(&read(number));
        other.ask(&format!("RLOCK.RELEASE doc r{number:03} READ"));
    });
    assert!(number >= 8, "{number}");
    for reader in (20..100).step_by(2) {
        let owner = format!("r{reader:03}").into_bytes();
        let times = all.iter().filter(|(_, other, _)| *other == owner).count();
        assert_eq!(times, 1, "{reader}");
    }
    let mut owners: Vec<_> = all.iter().map(|(key, owner, _)| (key, owner)).collect();
    let count = owners.len();
    owners.sort();
    owners.dedup();
    assert_eq!(owners.len(), count, "nobody comes twice");
    // One by one, an owner that writes and reads with both.
    other.token("RLOCK.ACQUIRE book w 100000 WRITE");
    other.token("RLOCK.ACQUIRE book w 100000 READ");
    let (all, _) = pages(&mut client, "COUNT 1 MATCH book", |_| ());
    let modes: Vec<_> = all.iter().map(|(_, _, mode)| mode.as_str()).collect();
    assert_eq!(modes, ["write", "read"]);
}

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
    let old = now_ms();
    pass(old + 250);
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
            "HELD-LONGER 200",
            "doc:1=host1:b doc:1=host2:b job:1=host1:a job:2=host2:a",
        ),
        ("HELD-LONGER 100000", ""),
        ("MATCH job:* OWNER host1: HELD-LONGER 200", "job:1=host1:a"),
    ] {
        for count in ["", " COUNT 1", " COUNT 1000"] {
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
fn count_bounds_what_is_looked_at_and_not_what_is_told() {
    let server = Server::start();
    let mut client = server.raw();
    let take = |number| format!("RLOCK.ACQUIRE k:{number} o 100000");
    client.succeed(&(0..95).map(take).collect::<Vec<_>>());
    for (words, most, told) in [
        ("", 10, 95),
        ("COUNT 10 MATCH other", 10, 0),
        ("COUNT 10 OWNER other", 10, 0),
        ("COUNT 20 HELD-LONGER 900000", 20, 0),
        ("COUNT 95", 95, 95),
        ("COUNT 9007199254740991", 95, 95),
    ] {
        let (all, number) = pages(&mut client, words, |_| ());
        assert_eq!(all.len(), told, "{words}");
        assert!(
            (95_usize.div_ceil(most)..=95 / most + 1).contains(&number),
            "{words}: {number}"
        );
    }
    let (_, first) = after(&mut client, b"0", "");
    assert_eq!(first.len(), 10);
    client.succeed(&(95..300).map(take).collect::<Vec<_>>());
    let (_, most) = after(&mut client, b"0", "COUNT 1000");
    assert_eq!(most.len(), 250);
    client.succeed(&(95..300).map(|n| format!("DEL k:{n}")).collect::<Vec<_>>());
    // Names that are only waited for count as well.
    let mut waiters: Vec<RawClient> = Vec::new();
    for number in 0..30 {
        let mut waiter = server.raw();
        waiter.send(&format!(
            "RLOCK.MACQUIRE 2 free:{number} k:0 w{number} 1000 BLOCK 0"
        ));
        waiters.push(waiter);
    }
    client.has_waiters("k:0", 30);
    let (all, number) = pages(&mut client, "COUNT 5", |_| ());
    assert_eq!(all.len(), 95);
    assert!(number >= 25, "{number}");
}

#[test]
fn names_and_owners_may_be_any_bytes() {
    let server = Server::start();
    let mut client = server.raw();
    let words: [&[u8]; 6] = [b"-", b"\x00", b"\xff\xfe", b"a b\r\n", b"0", b"\x00\xff"];
    let mut expected = Vec::new();
    for name in words.into_iter().chain([b"".as_slice()]) {
        for owner in words {
            client.ask(&[b"RLOCK.ACQUIRE".as_slice(), name, owner, b"100000", b"READ"]);
            expected.push((name.to_vec(), owner.to_vec(), "read".to_owned()));
        }
    }
    expected.sort();
    for count in [1, 4, 100] {
        let (mut all, _) = pages(&mut client, &format!("COUNT {count}"), |_| ());
        all.sort();
        assert_eq!(all, expected, "COUNT {count}");
    }
    let request: [&[u8]; 5] = [b"RLOCK.LIST", b"MATCH", b"\xff[\xfe]", b"COUNT", b"100"];
    assert_eq!(page(client.ask(&request)).1.len(), 6);
    let request: [&[u8]; 5] = [b"RLOCK.LIST", b"OWNER", b"\x00", b"COUNT", b"100"];
    assert_eq!(page(client.ask(&request)).1.len(), 14);
}

#[test]
fn the_locks_of_the_selected_database_are_told() {
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
fn a_cursor_of_an_earlier_run_is_refused() {
    let mut server = Server::start();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE a o 100000");
    client.token("RLOCK.ACQUIRE b o 100000");
    let (cursor, _) = after(&mut client, b"0", "COUNT 1");
    let request = [b"RLOCK.LIST".as_slice(), b"CURSOR", &cursor];
    server.restart();
    let mut client = server.raw();
    for _ in 0..2 {
        let line = client.error(&request);
        assert!(
            line.starts_with("ERR the cursor is of another server"),
            "{line}"
        );
        client.token("RLOCK.ACQUIRE c o 100000");
    }
}

#[test]
fn wrong_requests_are_told_what_is_wrong() {
    let server = Server::start();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k o 100000");
    let long = format!("RLOCK.LIST MATCH {}", "*".repeat(1025));
    for (request, what) in [
        ("RLOCK.LIST k", "syntax error at 'k'"),
        ("RLOCK.LIST 0", "syntax error at '0'"),
        ("RLOCK.LIST CURSOR", "CURSOR needs something behind it"),
        ("RLOCK.LIST MATCH", "MATCH needs something behind it"),
        ("RLOCK.LIST OWNER", "OWNER needs something behind it"),
        (
            "RLOCK.LIST HELD-LONGER",
            "HELD-LONGER needs something behind it",
        ),
        (
            "RLOCK.LIST HELD-LONGER x",
            "HELD-LONGER must be a whole number of ms",
        ),
        (
            "RLOCK.LIST HELD-LONGER -1",
            "HELD-LONGER must be a whole number of ms",
        ),
        ("RLOCK.LIST COUNT 0", "COUNT must be a whole number from 1"),
        ("RLOCK.LIST COUNT", "COUNT"),
        ("RLOCK.LIST CURSOR 0 CURSOR 0", "syntax error at 'CURSOR'"),
        ("RLOCK.LIST MATCH a MATCH b", "syntax error at 'MATCH'"),
        (
            "RLOCK.LIST CURSOR 1",
            "the cursor must be one that RLOCK.LIST has replied",
        ),
        ("RLOCK.LIST CURSOR 17-61", "the cursor must be one that"),
        (
            "RLOCK.LIST CURSOR 0000000000000000-6",
            "the cursor must be one that",
        ),
        (
            "RLOCK.LIST CURSOR 0000000000000000-61",
            "begin again with CURSOR 0",
        ),
        (
            &long,
            "the pattern must be at most 1024 bytes long, got 1025",
        ),
    ] {
        let line = client.error(request);
        assert!(
            line.starts_with("ERR ") && line.contains(what),
            "{request}: {line}"
        );
    }
    let hostile = format!("RLOCK.LIST MATCH {}b", "*a".repeat(500));
    assert_eq!(page(client.ask(&hostile)).1, []);
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
fn a_user_is_told_of_the_keys_that_it_may_read() {
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

#[test]
fn a_node_lists_the_locks_of_all_its_slots() {
    let server = cluster();
    let mut client = server.raw();
    for key in ["a", "b", "{c}doc"] {
        client.token(&format!("RLOCK.ACQUIRE {key} o 100000 READ"));
    }
    for count in ["", "COUNT 1"] {
        assert_eq!(listed(&mut client, count), "a=o b=o {c}doc=o");
        // Whatever the connection asked for before.
        client.int("EXISTS b");
    }
    let script = "return redis.call('RLOCK.LIST')";
    for request in [["EVAL", script, "0", ""], ["EVAL", script, "1", "a"]] {
        let line = client.error(&request);
        assert!(line.contains("in a cluster this is refused in"), "{line}");
    }
    let replies = client.ask_all(&["MULTI", "EXISTS a", "RLOCK.LIST", "EXEC"]);
    let Value::Array(replies) = &replies[3] else {
        panic!("{replies:?}");
    };
    assert!(matches!(replies[1], Value::ServerError(_)), "{replies:?}");
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
fn what_somebody_made_of_a_lock_is_told_as_it_is() {
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
