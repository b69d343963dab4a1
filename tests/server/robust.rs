//! Whatever is sent, the server lives, and every request has its reply.

use std::time::Duration;

use redis::Value;

use crate::support::{code, pong, token, Ask, Random, RawClient, Server, Waiter};

const COMMANDS: [&[u8]; 6] = [
    b"RLOCK.ACQUIRE",
    b"RLOCK.RELEASE",
    b"RLOCK.RENEW",
    b"RLOCK.FORCE",
    b"RLOCK.INFO",
    b"rlock.OWNER",
];
const KEYS: [&[u8]; 7] = [b"k1", b"k2", b"k3", b"", b"\0\xff\r\n", b"string", b"hash"];
const OWNERS: [&[u8]; 7] = [b"a", b"b", b"*", b"", b"\r\n\0\x80", b"mode", b"x:write"];
const NUMBERS: [&[u8]; 14] = [
    b"1",
    b"5",
    b"1000",
    b"0",
    b"-1",
    b"9007199254740991",
    b"9007199254740992",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"1e3",
    b"0x10",
    b" 1",
    b"",
];
const WORDS: [&[u8]; 10] = [
    b"BLOCK",
    b"block",
    b"ONCE",
    b"oNcE",
    b"ALL",
    b"READ",
    b"WRITE",
    b"WATCHDOG",
    b"",
    b"\xc3\x28",
];

/// A request that is now and then a good one.
fn request(random: &mut Random) -> Vec<Vec<u8>> {
    if random.below(8) == 0 {
        let (key, owner) = (*random.of(&KEYS[..3]), *random.of(&OWNERS[..3]));
        let (lease, block) = (*random.of(&NUMBERS[..3]), *random.of(&NUMBERS[..4]));
        let args = [COMMANDS[0], key, owner, lease, b"BLOCK", block];
        return args.map(<[u8]>::to_vec).to_vec();
    }
    let mut args = vec![random.of(&COMMANDS).to_vec()];
    args.push(random.of(&KEYS).to_vec());
    args.push(random.of(&OWNERS).to_vec());
    args.push(random.of(&NUMBERS).to_vec());
    for _ in 0..random.below(4) {
        args.push(random.of(&WORDS).to_vec());
        if random.below(2) == 0 {
            args.push(random.of(&NUMBERS).to_vec());
        }
    }
    match random.below(10) {
        0 => args.truncate(1 + random.below(args.len())),
        1 => {
            let at = 1 + random.below(args.len() - 1);
            args.swap(1, at);
        }
        2 => {
            let (at, length) = (1 + random.below(args.len() - 1), random.below(2000));
            args[at] = (0..length).map(|_| random.below(256) as u8).collect();
        }
        3 => args.resize(4 + random.below(200), random.of(&WORDS).to_vec()),
        _ => {}
    }
    args
}

/// A reply is what it should be, whatever was asked.
#[track_caller]
fn check(request: &[Vec<u8>], reply: &Value) {
    let Value::ServerError(error) = reply else {
        return;
    };
    let codes = [
        "ERR",
        "WRONGTYPE",
        "WRONGMODE",
        "NOTHELD",
        "HELD",
        "DEADLOCK",
    ];
    let detail = error.details().unwrap_or_default();
    assert!(codes.contains(&error.code()), "{request:?}: {reply:?}");
    assert!(!detail.is_empty(), "{request:?}: {reply:?}");
    assert!(error.code().len() + 1 + detail.len() <= 512, "{detail}");
    assert!(
        detail.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
        "{detail}"
    );
    assert!(
        !detail.contains("a fault in rlock"),
        "{request:?}: {reply:?}"
    );
}

#[test]
fn garbage_has_a_reply_and_harms_nobody() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    let id = client.client_id();
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    control.ask_all(&["SET string v", "HSET hash f v g w"]);
    // FLUSHALL takes its watchdog holds away, which is to cost it no more here.
    control.ask("CONFIG SET rlock.watchdog-lost keep");
    let mut waited = 0;
    for round in 0..3000 {
        let request = request(&mut random);
        client.send(&request);
        let reply = match client.read_within(Duration::from_millis(10)) {
            Some(reply) => reply,
            None => {
                // It waits, and for long: send it away.
                waited += control.int(&format!("CLIENT UNBLOCK {id}"));
                client.read()
            }
        };
        check(&request, &reply);
        if round % 50 == 0 {
            client.in_step();
            control.ask_all(&["FLUSHALL", "SET string v", "HSET hash f v g w"]);
        }
    }
    assert!(waited > 0, "nothing ever made a request wait");
    control.ask("FLUSHALL");
    client.in_step();
    control.token("RLOCK.ACQUIRE k1 a 1000");
    assert!(!server.log().contains("panic"));
    server.alive();
}

#[test]
fn garbage_in_pipelines_and_transactions_keeps_the_protocol_in_step() {
    let server = Server::start();
    let mut client = server.raw();
    let mut random = Random::new(0xdead_beef_cafe_f00d);
    for _ in 0..100 {
        let requests: Vec<_> = (0..30).map(|_| request(&mut random)).collect();
        client.send("MULTI");
        requests.iter().for_each(|request| client.send(request));
        client.send_all(&["EXEC", "PING"]);
        let replies = client.read_many(requests.len() + 3);
        for (request, reply) in requests.iter().zip(&replies[1..]) {
            if *reply != Value::SimpleString("QUEUED".to_owned()) {
                check(request, reply);
            }
        }
        if let Value::Array(replies) = &replies[requests.len() + 1] {
            assert_eq!(replies.len(), requests.len());
            for (request, reply) in requests.iter().zip(replies) {
                check(request, reply);
            }
        }
        assert_eq!(replies.last(), Some(&pong()));
    }
    server.alive();
}

#[test]
fn block_tries_once_where_nobody_can_wait() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut client = server.raw();
    let replies = client.ask_all(&["MULTI", "RLOCK.ACQUIRE k b 1000 BLOCK 0", "EXEC"]);
    assert_eq!(replies[2], Value::Array(vec![Value::Nil]));
    let script = "return{redis.call('RLOCK.ACQUIRE',KEYS[1],ARGV[1],1000,'BLOCK',0)}";
    let eval = |owner| ["EVAL", script, "1", "k", owner];
    let refused = client.ask(&eval("b"));
    assert!(
        matches!(&refused, Value::Array(replies) if replies[0] == Value::Nil || *replies == [Value::Boolean(false)]),
        "{refused:?}"
    );
    assert_eq!(control.waiters("k"), 0);
    control.ask("RLOCK.RELEASE k a");
    match client.ask(&eval("b")) {
        Value::Array(replies) => drop(token(replies[0].clone())),
        other => panic!("{other:?}"),
    }
    assert_eq!(control.hash("k"), "b=1");

    // A script's release hands on to a waiter, like any other.
    let mut waiter = Waiter::new(&server, "k", "c");
    let release = "return redis.call('RLOCK.RELEASE',KEYS[1],ARGV[1])";
    assert_eq!(client.int(&["EVAL", release, "1", "k", "b"]), 0);
    waiter.token();
    for refused in ["RLOCK.OWNER", "RLOCK.ACQUIRE k * 1000"] {
        let words: Vec<_> = refused.split(' ').map(|word| format!("'{word}'")).collect();
        let script = format!("return redis.call({})", words.join(","));
        assert_eq!(client.code(&["EVAL", &script, "0"]), "ERR");
    }
    server.alive();
}

#[test]
fn a_subscriber_of_the_new_protocol_waits_or_tries() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut client = server.raw();
    client.ask("HELLO 3");
    let subscribed = client.ask("SUBSCRIBE news");
    assert!(matches!(subscribed, Value::Push { .. }), "{subscribed:?}");
    client.send("RLOCK.ACQUIRE k b 100000 BLOCK 0");
    let version = server.version();
    if version.is_valkey() && version.at_least(8, 1) {
        assert_eq!(client.read(), Value::Nil);
        assert_eq!(control.waiters("k"), 0);
    } else {
        control.has_waiters("k", 1);
        assert_eq!(control.int("RLOCK.RELEASE k a"), 0);
        token(client.read());
        assert_eq!(control.hash("k"), "b=1");
    }
    assert_eq!(control.int("PUBLISH news x"), 1);
    assert!(matches!(client.read(), Value::Push { .. }));
    server.alive();
}

#[test]
fn ten_thousand_locks_are_flushed_at_once() {
    let server = Server::start();
    let mut control = server.raw();
    for part in 0..10 {
        let names = (part * 1000)..(part + 1) * 1000;
        let all: Vec<_> = names
            .map(|n| format!("RLOCK.ACQUIRE k{n} a 60000"))
            .collect();
        control.ask_all(&all).into_iter().for_each(|reply| {
            token(reply);
        });
    }
    let mut waiters: Vec<_> = (0..10)
        .map(|n| Waiter::new(&server, &format!("k{}", n * 999), "b"))
        .collect();
    assert_eq!(control.int("DBSIZE"), 10_000);
    control.ask("FLUSHALL");
    for waiter in &mut waiters {
        waiter.token();
    }
    assert_eq!(control.int("DBSIZE"), 10);
    for n in 0..10 {
        let key = format!("k{}", n * 999);
        assert_eq!(control.int(&format!("RLOCK.RELEASE {key} b")), 0);
        control.is_free(&key);
    }
    let replies: Vec<_> = (0..10_000)
        .map(|n| format!("RLOCK.RELEASE k{n} a"))
        .collect();
    for reply in control.ask_all(&replies) {
        assert_eq!(code(&reply), "NOTHELD");
    }
}

#[test]
fn a_client_that_dies_with_everything_outstanding_harms_nobody() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    for n in 0..100 {
        let mut client: RawClient = server.raw();
        client.send_all(&[
            "MULTI",
            "RLOCK.ACQUIRE other a 10 BLOCK 0",
            "EXEC",
            &format!("RLOCK.ACQUIRE k w{n} 1000 BLOCK 0"),
            "RLOCK.RELEASE k a",
        ]);
        if n % 2 == 0 {
            control.has_waiters("k", 1);
        }
        client.close();
        control.has_waiters("k", 0);
    }
    // What stood behind the wait was never run.
    assert_eq!(control.hash("k"), "a=1");
    server.alive();
}
