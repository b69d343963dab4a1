//! RENEW … FENCE, and `rlock.grant-after`: what a quorum of servers needs of each.

use crate::support::{
    eventually, lease_key, longest, now_ms, now_us, Ask, Listener, RawClient, Server, Waiter,
};

const COUNTER: &str = "redisson_lock_token:{job}";

/// 30 days, ms.
const KEPT: i64 = 30 * 24 * 3600 * 1000;

/// Beyond the clock by half a day.
fn ahead() -> i64 {
    (now_ms() + 12 * 3600 * 1000) * 1000
}

fn counter(client: &mut RawClient) -> i64 {
    let text = client.text(&format!("GET {COUNTER}"));
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn the_counter_is_raised_and_replied() {
    let ahead = ahead();
    let server = Server::start();
    let mut client = server.raw();
    let token = client.int("RLOCK.ACQUIRE job a 60000");
    assert_eq!(client.int("RLOCK.RENEW job a 60000 FENCE 1"), token);
    assert_eq!(counter(&mut client), token);
    for (given, said) in [(ahead, ahead), (5, ahead), (ahead + 7, ahead + 7)] {
        let line = format!("RLOCK.RENEW job a 90000 fence {given}");
        assert_eq!(client.int(&line), said);
        assert_eq!(counter(&mut client), said);
    }
    let left = client.int(&format!("PTTL {COUNTER}"));
    assert!((KEPT - 60_000..=longest(KEPT)).contains(&left), "{left}");
    assert!(client.ends("job") > now_ms() + 80_000);
    client.int("RLOCK.RELEASE job a");
    assert_eq!(client.int("RLOCK.ACQUIRE job b 60000"), ahead + 8);
}

#[test]
fn so_it_is_in_each_mode_and_for_a_waiters_grant() {
    let ahead = ahead();
    let server = Server::start();
    let mut client = server.raw();
    for (mode, more) in [("READ", ""), ("WRITE", ""), ("LIMIT 2", "PERMITS")] {
        let take = format!("RLOCK.ACQUIRE job a 60000 {mode}");
        let token = client.int(&take);
        let named = if more.is_empty() { mode } else { more };
        let fence = format!("RLOCK.RENEW job a 60000 {named} FENCE 3");
        assert_eq!(client.int(&fence), token);
        assert_eq!(client.int("RLOCK.FORCE job"), 1);
    }
    client.int("RLOCK.ACQUIRE job a 60000");
    client.int(&format!("RLOCK.RENEW job a 60000 FENCE {ahead}"));
    let mut waiter = Waiter::with(&server, "job b 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    client.int("RLOCK.RELEASE job a");
    assert_eq!(waiter.token(), ahead + 1);
    assert_eq!(counter(&mut client), ahead + 1);
}

#[test]
fn what_is_refused_changes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job a 60000");
    let before = client.state(b"job");
    for (line, why) in [
        ("job b 60000 FENCE 5", "NOTHELD owner 'b' does not hold"),
        ("job a 60000 READ FENCE 5", "NOTHELD"),
        ("job a 60000 FENCE", "ERR syntax error: FENCE needs a token"),
        (
            "job a 60000 FENCE 0",
            "ERR the token must be a whole number from 1 to",
        ),
        (
            "job a 60000 FENCE 9007199254740992",
            "to 9007199254740991, got",
        ),
        (
            "job a 60000 FENCE 4503599627370496",
            "ERR the token 4503599627370496 is greater than all that this server has given",
        ),
        ("job a 60000 FENCE 1 FENCE 2", "ERR syntax error at 'FENCE'"),
    ] {
        let error = client.error(&format!("RLOCK.RENEW {line}"));
        assert!(error.contains(why), "{line}: {error}");
    }
    assert_eq!(client.int(&format!("EXISTS {COUNTER}")), 0);
    client.int(&format!("RPUSH {COUNTER} x"));
    let error = client.error("RLOCK.RENEW job a 60000 FENCE 5");
    assert!(error.starts_with("WRONGTYPE"), "{error}");
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.int("RLOCK.RENEW job a 60000"), 1);
}

/// Whatever token one lock was brought, its own tokens are above that, and those of others go
/// by the clock.
#[test]
fn one_lock_takes_no_token_from_the_others() {
    let server = Server::start();
    let mut client = server.raw();
    let day = 24 * 3600 * 1_000_000;
    client.int("RLOCK.ACQUIRE job a 60000");
    let most = now_ms() * 1000 + day - 60_000_000;
    client.int(&format!("RLOCK.RENEW job a 60000 FENCE {most}"));
    client.int("RLOCK.RELEASE job a");
    let other = client.int("RLOCK.ACQUIRE other b 60000");
    assert!(other <= now_us(), "{other}");
    let token = client.int("RLOCK.ACQUIRE job b 60000");
    assert_eq!(token, most + 1);
    for (name, token) in [("job", token), ("other", other)] {
        let fenced = client.int(&format!("RLOCK.RENEW {name} b 60000 FENCE {token}"));
        assert_eq!(fenced, token);
        let line = format!("RLOCK.RENEW {name} b 60000 FENCE {}", most + day);
        assert!(client.error(&line).contains("more than a day ahead"));
    }
}

#[test]
fn one_that_somebody_made_without_a_ttl_stays_so() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(&format!("SET {COUNTER} 7"));
    client.int("RLOCK.ACQUIRE job a 60000");
    client.int("RLOCK.RENEW job a 60000 FENCE 5");
    assert_eq!(client.int(&format!("PTTL {COUNTER}")), -1);
    client.int(&format!("PEXPIRE {COUNTER} 1000000"));
    client.int("RLOCK.RENEW job a 60000 FENCE 5");
    assert!(client.int(&format!("PTTL {COUNTER}")) > KEPT - 60_000);
    // A grant leaves the counter its end.
    let ends = client.deadline(COUNTER);
    client.int("RLOCK.RELEASE job a");
    client.int("RLOCK.ACQUIRE job b 60000");
    assert_eq!(client.deadline(COUNTER), ends);
}

#[test]
fn it_is_announced_as_the_writes_that_it_is() {
    let ahead = ahead();
    let server = Server::start();
    let mut client = server.raw();
    let mut listener = Listener::keyspace(&server, 0);
    client.int("RLOCK.ACQUIRE job a 60000");
    client.int(&format!("RLOCK.RENEW job a 60000 FENCE {ahead}"));
    let told = [
        ("hset", "job"),
        ("expire", "job"),
        ("rlock.acquired", "job"),
        ("set", COUNTER),
        ("expire", COUNTER),
        ("expire", "job"),
        ("rlock.renewed", "job"),
    ];
    let told = told.map(|(event, key)| (event.to_owned(), key.to_owned()));
    assert_eq!(listener.events(), told);
}

#[test]
fn a_replica_and_a_restart_have_it_too() {
    let ahead = ahead();
    let mut server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let replica = Server::start_replica_of(&server);
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job a 600000");
    client.int(&format!("RLOCK.RENEW job a 600000 FENCE {ahead}"));
    let (state, ends) = (client.state(b"job"), client.deadline(COUNTER));
    let mut there = replica.raw();
    eventually("the replica has it", || {
        there.deadline(COUNTER) == ends && there.state(b"job") == state
    });
    assert_eq!(counter(&mut there), ahead);
    server.kill();
    server.start_again();
    let mut client = server.raw();
    assert_eq!(counter(&mut client), ahead);
    assert_eq!(client.deadline(COUNTER), ends);
    assert_eq!(client.state(b"job"), state);
    client.int("RLOCK.RELEASE job a");
    assert_eq!(client.int("RLOCK.ACQUIRE job b 60000"), ahead + 1);
}

#[test]
fn for_a_while_after_the_start_nothing_is_granted() {
    let mut server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job a 600000");
    client.ok("CONFIG SET rlock.grant-after 600000");
    // It counts from the start on.
    let error = client.error("RLOCK.ACQUIRE other a 60000");
    assert!(
        error.starts_with("NOTYET this server has started"),
        "{error}"
    );
    client.ok("CONFIG SET rlock.grant-after 0");
    client.int("RLOCK.ACQUIRE other a 60000");
    client.int("RLOCK.RELEASE other a");
    drop(client);
    server.kill();
    server.start_again();
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.grant-after 600000");
    for line in [
        "RLOCK.ACQUIRE other b 60000",
        "RLOCK.ACQUIRE other b 60000 BLOCK 0",
        "RLOCK.ACQUIRE other b 60000 READ",
        "RLOCK.ACQUIRE other b 60000 LIMIT 2 BLOCK 0",
        "RLOCK.MACQUIRE 2 other job a 60000",
        "RLOCK.ACQUIRE job b 60000 BLOCK 0",
    ] {
        let error = client.error(line);
        assert!(error.starts_with("NOTYET"), "{line}: {error}");
    }
    assert_eq!(client.int("DBSIZE"), 1);
    // Who holds it goes on.
    client.int("RLOCK.ACQUIRE job a 600000");
    assert_eq!(client.int("RLOCK.RENEW job a 60000"), 1);
    assert_eq!(client.int("RLOCK.RELEASE job a"), 1);
    assert_eq!(client.int("RLOCK.RELEASE job a"), 0);
    assert!(client
        .error("RLOCK.ACQUIRE job a 60000")
        .starts_with("NOTYET"));
    // When the time is over it is as ever.
    client.ok("CONFIG SET rlock.grant-after 1000");
    eventually("it grants", || {
        client.ask("RLOCK.ACQUIRE job b 60000") != client.ask("RLOCK.RELEASE none b")
            && client.hash("job") == "b=1"
    });
}

#[test]
fn readers_lease_keys_are_renewed_with_it() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job a 1000 READ");
    client.int("RLOCK.RENEW job a 90000 READ FENCE 5");
    assert!(client.deadline(&lease_key("job", "a", 1)) > now_ms() + 80_000);
}
