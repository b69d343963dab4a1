//! Names are bytes, keywords are words, and replies are what each protocol
//! says they are.

use redis::Value;

use crate::support::{bulk, list, map, Ask, RawClient, Server, Wire};

/// Goes through a lock's life under a name and an owner.
#[track_caller]
fn round_trip(client: &mut RawClient, key: &[u8], owner: &[u8]) {
    let acquire: [&[u8]; 4] = [b"RLOCK.ACQUIRE", key, owner, b"10000"];
    let token = client.token(&acquire);
    assert_eq!(client.int(&acquire), token);
    let fields = client.ask(&[b"HGETALL", key]);
    assert_eq!(fields, Value::Array(vec![bulk(owner), bulk("2")]));
    let other: [&[u8]; 4] = [b"RLOCK.ACQUIRE", key, b"another", b"10000"];
    assert!(client.refused(&other));
    let info = client.map(&[b"RLOCK.INFO", key]);
    let holder = map(list(info["holders"].clone()).remove(0));
    assert_eq!(holder["owner"], bulk(owner));
    assert_eq!(holder["token"], Value::Int(token));
    let renew: [&[u8]; 4] = [b"RLOCK.RENEW", key, owner, b"20000"];
    assert_eq!(client.int(&renew), 1);
    let release: [&[u8]; 3] = [b"RLOCK.RELEASE", key, owner];
    assert_eq!(client.int(&release), 1);
    assert_eq!(client.int(&release), 0);
    assert!(client.token(&acquire) > token);
    assert_eq!(client.int(&[b"RLOCK.FORCE", key]), 1);
    assert_eq!(client.int(&[b"EXISTS", key]), 0);
}

#[test]
fn keys_and_owners_are_any_bytes() {
    let server = Server::start();
    let mut client = server.raw();
    let all: Vec<u8> = (0..=255).collect();
    let longest = [0xff; 512];
    let keys: [&[u8]; 8] = [
        b"",
        b"\0",
        b"\r\n",
        b" ",
        b"*",
        &all,
        b"job\0more",
        &[0; 10_000],
    ];
    let owners: [&[u8]; 13] = [
        b"\0",
        b" ",
        b"\r\n",
        b"1",
        b"-1",
        &all,
        &longest,
        b"ONCE",
        b"ALL",
        b"MODE",
        b"mode2",
        b"a:write:b",
        b"a:WRITE",
    ];
    for key in keys {
        for owner in owners {
            round_trip(&mut client, key, owner);
        }
    }
    assert_eq!(client.int("DBSIZE"), 0);
}

#[test]
fn owners_that_differ_in_one_byte_are_two() {
    let server = Server::start();
    let mut client = server.raw();
    let one: [&[u8]; 4] = [b"RLOCK.ACQUIRE", b"job", b"owner\0a", b"10000"];
    client.token(&one);
    for other in [
        b"owner\0b".as_slice(),
        b"owner",
        b"owner\0",
        b"Owner\0a",
        b"owner\0a\0",
    ] {
        let acquire: [&[u8]; 4] = [b"RLOCK.ACQUIRE", b"job", other, b"10000"];
        assert!(client.refused(&acquire), "{other:?}");
    }
}

#[test]
fn a_lock_under_a_binary_name_expires_and_is_handed_on() {
    let server = Server::start();
    let mut client = server.raw();
    let (key, holder, waiter) = (b"\r\n\0\xff".as_slice(), b"\xff\0", [0; 512]);
    client.ask(&[b"RLOCK.ACQUIRE", key, holder, b"40"]);
    let wait: [&[u8]; 6] = [b"RLOCK.ACQUIRE", key, &waiter, b"10000", b"BLOCK", b"0"];
    client.token(&wait);
    let fields = client.ask(&[b"HGETALL", key]);
    assert_eq!(fields, Value::Array(vec![bulk(waiter), bulk("1")]));
}

#[test]
fn keywords_come_in_any_case_and_order() {
    let server = Server::start();
    let mut client = server.raw();
    for options in [
        "ONCE BLOCK 10",
        "BLOCK 10 ONCE",
        "once block 10",
        "oNcE bLoCk 10",
        "block 0",
        "once",
    ] {
        let request = format!("RLOCK.ACQUIRE job alice 10000 {options}");
        client.int(&request);
        assert_eq!(client.int("RLOCK.RELEASE job alice all"), 0, "{options}");
    }
    let token = client.int("rlock.acquire job alice 10000");
    let again = client.int("Rlock.Acquire job alice 10000 block 0 once");
    assert_eq!(again, token);
    assert!(client.refused("RLOCK.ACQUIRE job bob 10000 block 1 once"));
    assert_eq!(client.int("rlock.release job alice All"), 0);
}

#[test]
fn null_is_the_null_of_the_protocol() {
    let server = Server::start();
    server.raw().int("RLOCK.ACQUIRE job alice 3600000");
    let mut two = Wire::connect(&server);
    let mut three = Wire::connect_resp3(&server);
    for options in ["", "ONCE", "BLOCK 1", "BLOCK 20"] {
        let request = format!("RLOCK.ACQUIRE job bob 1000 {options}");
        assert_eq!(two.exact_text(&request), "$-1\r\n", "{request}");
        assert_eq!(three.exact_text(&request), "_\r\n", "{request}");
    }
    for (wire, null) in [(&mut two, "$-1\r\n"), (&mut three, "_\r\n")] {
        let requests = "MULTI\nRLOCK.ACQUIRE job bob 1000 BLOCK 0\nEXEC";
        let replies = format!("+OK\r\n+QUEUED\r\n*1\r\n{null}");
        assert_eq!(wire.exact_text(requests), replies);
    }
}

#[test]
fn integers_are_integers_in_both_protocols() {
    let server = Server::start();
    for mut wire in [Wire::connect(&server), Wire::connect_resp3(&server)] {
        let token = wire.exact_text("RLOCK.ACQUIRE job alice 10000");
        assert!(token.starts_with(':') && token.ends_with("\r\n"), "{token}");
        assert!(token[1..].trim_end().parse::<i64>().unwrap() > 0);
        assert_eq!(wire.exact_text("RLOCK.ACQUIRE job alice 10000"), token);
        assert_eq!(wire.exact_text("RLOCK.RENEW job alice 10000"), ":1\r\n");
        assert_eq!(wire.exact_text("RLOCK.RELEASE job alice"), ":1\r\n");
        assert_eq!(wire.exact_text("RLOCK.FORCE job"), ":1\r\n");
        assert_eq!(wire.exact_text("RLOCK.FORCE job"), ":0\r\n");
        let owner = wire.exact_text("RLOCK.OWNER");
        assert!(owner.starts_with('$'), "{owner:?}");
        let error = wire.exact_text("RLOCK.RELEASE job alice");
        assert!(error.starts_with("-NOTHELD "), "{error:?}");
    }
}

#[test]
fn info_is_a_map() {
    let server = Server::start();
    let free = |map: &str, null: &str| {
        format!(
            "{map}\r\n$4\r\nmode\r\n$4\r\nfree\r\n$7\r\nholders\r\n*0\r\n$7\r\nwaiters\r\n:0\r\n\
             $14\r\noldest-wait-ms\r\n{null}\r\n"
        )
    };
    let mut two = Wire::connect(&server);
    let mut three = Wire::connect_resp3(&server);
    assert_eq!(two.exact_text("RLOCK.INFO job"), free("*8", "$-1"));
    assert_eq!(three.exact_text("RLOCK.INFO job"), free("%4", "_"));

    let mut client = server.raw();
    client.succeed(&["HSET job bob 2", "PEXPIRE job 60000"]);
    assert_eq!(client.int("RLOCK.FORCE job IFOWNER alice"), 0);
    // It is known by now, and stays a lock.
    client.int("PERSIST job");
    let holder =
        "$5\r\nowner\r\n$3\r\nbob\r\n$4\r\nmode\r\n$9\r\nexclusive\r\n$5\r\nholds\r\n:2\r\n\
                  $12\r\nremaining-ms\r\n";
    let reply = two.exact_text("RLOCK.INFO job");
    let begin = "*8\r\n$4\r\nmode\r\n$9\r\nexclusive\r\n$7\r\nholders\r\n*1\r\n*";
    assert!(reply.starts_with(begin), "{reply:?}");
    assert!(reply.contains(&format!("{holder}$-1\r\n")), "{reply:?}");
    let reply = three.exact_text("RLOCK.INFO job");
    let begin = "%4\r\n$4\r\nmode\r\n$9\r\nexclusive\r\n$7\r\nholders\r\n*1\r\n%";
    assert!(reply.starts_with(begin), "{reply:?}");
    assert!(reply.contains(&format!("{holder}_\r\n")), "{reply:?}");
}
