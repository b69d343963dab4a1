//! RENEW … TOKEN: a hold goes on with a new token, greater than all before it.

use redis::Value;

use crate::support::{
    aof, eventually, is_try_again, lease_from, now_us, two_nodes_with_counters, Ask, Listener,
    Move, RawClient, Server, Session, Waiter, AOF,
};

const COUNTER: &str = "redisson_lock_token:{job}";
const RENEW: &str = "RLOCK.RENEW job alice 60000";

/// How each mode is asked for, and named afterwards.
const MODES: [[&str; 2]; 4] = [
    ["", ""],
    ["READ", "READ"],
    ["WRITE", "WRITE"],
    ["LIMIT 2", "PERMITS"],
];

fn take(client: &mut RawClient, mode: &str) -> i64 {
    client.int(&format!("RLOCK.ACQUIRE job alice 60000 {mode}"))
}

#[test]
fn tokens_rise_over_grants_and_renewals() {
    let server = Server::start();
    let mut client = server.raw();
    for [mode, named] in MODES {
        let mut last = 0;
        for _ in 0..20 {
            let mut tokens = vec![take(&mut client, mode)];
            for _ in 0..5 {
                tokens.push(client.int(&format!("{RENEW} {named} TOKEN")));
            }
            client.int(&format!("RLOCK.RELEASE job alice {named}"));
            let mut waits = Waiter::with(&server, &format!("job bob 60000 {mode} BLOCK 0"));
            tokens.push(waits.token());
            client.int("RLOCK.FORCE job");
            for token in tokens {
                assert!(token > last, "{mode}: {token} after {last}");
                assert!(token <= now_us());
                last = token;
            }
        }
    }
}

#[test]
fn the_hold_goes_on_and_all_that_shows_a_token_shows_the_newest() {
    let server = Server::start();
    let mut client = server.raw();
    for [mode, named] in MODES {
        take(&mut client, mode);
        let held_ms = client.only("job").held_ms;
        let line = format!("RLOCK.RENEW job alice 90000 {named} token");
        let (token, ends) = lease_from(90_000, || client.int(&line));
        assert!(ends.contains(&client.ends("job")), "{mode}");
        let shown = client.only("job");
        assert_eq!((shown.holds, shown.token), (1, Some(token)), "{mode}");
        assert!(shown.held_ms >= held_ms, "it is held since it was");
        let listed = format!("{:?}", client.ask("RLOCK.LIST MATCH job"));
        assert!(listed.contains(&token.to_string()), "{listed}");
        // A request whose reply was lost is sent again.
        let again = format!("{mode} ONCE");
        assert_eq!(take(&mut client, &again), token);
        assert_eq!(client.int("RLOCK.FORCE job"), 1);
    }
}

#[test]
fn the_token_before_is_refused() {
    let server = Server::start();
    let mut client = server.raw();
    for [mode, named] in MODES {
        let mut old = vec![take(&mut client, mode)];
        old.push(client.int(&format!("{RENEW} {named} TOKEN")));
        let token = client.int(&format!("{RENEW} {named} TOKEN"));
        let (before, changes) = (client.state(b"job"), client.changes());
        for old in old {
            let release = format!("RLOCK.RELEASE job alice {named} IFTOKEN {old}");
            assert_eq!(client.int(&release), 0, "{mode}");
            assert_eq!(client.int(&format!("RLOCK.FORCE job IFTOKEN {old}")), 0);
        }
        assert_eq!(client.state(b"job"), before, "{mode}");
        assert_eq!(client.changes(), changes, "{mode}");
        let release = format!("RLOCK.RELEASE job alice {named} IFTOKEN {token}");
        assert_eq!(client.int(&release), 0);
        client.nothing_left("job");
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    let many = "HELD owner 'alice' holds 'job' more than once";
    let held: [(&[&str], &str); 5] = [
        (&["job alice 60000", "job alice 60000"], ""),
        (&["job alice 60000 READ", "job alice 60000 READ"], "READ"),
        (&["job alice 60000 READ", "job alice 60000 WRITE"], "READ"),
        (&["job alice 60000 WRITE", "job alice 60000 READ"], "WRITE"),
        (&["job alice 60000 LIMIT 3 PERMITS 2"], "PERMITS"),
    ];
    for (requests, mode) in held {
        for request in requests {
            client.int(&format!("RLOCK.ACQUIRE {request}"));
        }
        is_refused(&mut client, &format!("alice 90000 {mode} TOKEN"), many);
        // With one of them it is as ever.
        client.int("RLOCK.FORCE job");
        client.int(&format!(
            "RLOCK.ACQUIRE {}",
            requests[0].replace("PERMITS 2", "")
        ));
        client.int(&format!("{RENEW} {mode} TOKEN"));
        client.int("RLOCK.FORCE job");
    }
    client.take("job", "alice");
    let syntax = "ERR syntax error at ";
    for (words, why) in [
        ("bob 90000 TOKEN", "NOTHELD owner 'bob' does not hold"),
        (
            "alice 90000 READ TOKEN",
            "NOTHELD owner 'alice' does not hold",
        ),
        ("alice 90000 FENCE 5 TOKEN", syntax),
        ("alice 90000 TOKEN FENCE 5", syntax),
        ("alice 90000 TOKEN TOKEN", syntax),
        ("alice 90000 TOKEN 5", syntax),
        ("alice 0 TOKEN", "ERR the lease must be"),
    ] {
        is_refused(&mut client, words, why);
    }
    for line in [
        "RLOCK.MRENEW 1 job alice 60000 TOKEN",
        "RLOCK.ACQUIRE other alice 60000 TOKEN",
        "RLOCK.RELEASE job alice TOKEN",
    ] {
        let error = client.error(line);
        assert!(error.starts_with(syntax), "{line}: {error}");
    }
    client.ok("SET text 1");
    assert_eq!(
        client.code("RLOCK.RENEW text alice 60000 TOKEN"),
        "WRONGTYPE"
    );
}

#[track_caller]
fn is_refused(client: &mut RawClient, words: &str, why: &str) {
    let (before, changes) = (client.state(b"job"), client.changes());
    let tokens = format!("{:?}", client.info("job").holds());
    let error = client.error(&format!("RLOCK.RENEW job {words}"));
    assert!(error.starts_with(why), "{words}: {error}");
    assert_eq!(client.state(b"job"), before, "{words}");
    assert_eq!(client.changes(), changes, "{words}");
    let left = format!("{:?}", client.info("job").holds());
    assert_eq!(left, tokens, "{words}");
}

/// As ACQUIRE does: to the lock's counter, where it has one.
#[test]
fn it_is_written_and_announced_as_that_of_a_grant() {
    let server = Server::start_with(&AOF);
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.fencing counter");
    let first = client.take("job", "alice");
    let mut listener = Listener::keyspace(&server, 0);
    let token = client.int(&format!("{RENEW} TOKEN"));
    assert_eq!(client.text(&format!("GET {COUNTER}")), token.to_string());
    assert_eq!(client.int(&format!("PTTL {COUNTER}")), -1);
    let told = [
        ("set", COUNTER),
        ("expire", "job"),
        ("rlock.renewed", "job"),
    ];
    let told = told.map(|(event, key)| (event.to_owned(), key.to_owned()));
    assert_eq!(listener.events(), told);
    let written = aof(&server);
    let sets = |token: i64| {
        let value = token.to_string();
        let of = |words: &&Vec<String>| words.contains(&value);
        let mut all: Vec<Vec<String>> = written.iter().filter(of).cloned().collect();
        assert_eq!(all.len(), 1, "{written:?}");
        let words = all.remove(0).into_iter();
        words.filter(|word| *word != value).collect::<Vec<_>>()
    };
    assert_eq!(sets(token), sets(first));
    // By the clock it has none, and a renewal makes none.
    client.ok("CONFIG SET rlock.fencing clock");
    let other = client.take("other", "alice");
    assert!(client.int("RLOCK.RENEW other alice 60000 TOKEN") > other);
    assert_eq!(client.int("EXISTS redisson_lock_token:{other}"), 0);
}

/// The counter is ahead of the clock, so no clock makes up for one that is lost.
#[test]
fn a_replica_and_a_restart_go_on_from_it() {
    let mut server = Server::start_with(&AOF);
    let replica = Server::start_replica_of(&server);
    let mut client = server.raw();
    let ahead = now_us() + 3_600_000_000;
    client.ok(&format!("SET {COUNTER} {ahead}"));
    client.take("job", "alice");
    let token = client.int(&format!("{RENEW} TOKEN"));
    assert_eq!(token, ahead + 2);
    let state = client.state(b"job");
    let mut there = replica.raw();
    eventually("the replica has it", || {
        there.ask(&format!("GET {COUNTER}")) == client.ask(&format!("GET {COUNTER}"))
            && there.state(b"job") == state
    });
    server.kill();
    server.start_again();
    there.ok("REPLICAOF NO ONE");
    for mut client in [server.raw(), there] {
        let next = client.int(&format!("{RENEW} TOKEN"));
        assert_eq!(next, token + 1);
        client.int("RLOCK.RELEASE job alice");
        assert_eq!(client.int("RLOCK.ACQUIRE job bob 60000"), token + 2);
    }
}

#[test]
fn after_a_restart_it_is_greater_by_the_clock() {
    let mut server = Server::start_with(&AOF);
    let mut client = server.raw();
    client.take("job", "alice");
    let token = client.int(&format!("{RENEW} TOKEN"));
    server.restart();
    let mut client = server.raw();
    let next = client.int(&format!("{RENEW} TOKEN"));
    assert!(next > token, "{next} after {token}");
    assert_eq!(client.only("job").token, Some(next));
    // One that Redisson took gets its first one so.
    client.succeed(&["HSET theirs uuid:1 1", "PEXPIRE theirs 60000"]);
    let first = client.int("RLOCK.RENEW theirs uuid:1 60000 TOKEN");
    assert!(first > next);
    assert_eq!(client.int("RLOCK.ACQUIRE theirs uuid:1 60000 ONCE"), first);
}

#[test]
fn transactions_scripts_and_pipelines_have_it_too() {
    let server = Server::start();
    let mut client = server.raw();
    let renew = format!("{RENEW} TOKEN");
    let mut replies = vec![Value::Int(client.take("job", "alice"))];
    client.ok("MULTI");
    for _ in 0..3 {
        client.text(&renew);
    }
    replies.extend(client.list("EXEC"));
    let script = "local tokens = {} for n = 1, 100 do tokens[n] = \
                  redis.call('RLOCK.RENEW', KEYS[1], 'alice', 60000, 'TOKEN') end return tokens";
    replies.extend(client.list(&["EVAL", script, "1", "job"]));
    let requests = vec![renew.as_str(); 500];
    replies.extend(client.ask_all(&requests));
    let token = |reply: Value| match reply {
        Value::Int(token) => token,
        other => panic!("{other:?}"),
    };
    let tokens: Vec<i64> = replies.into_iter().map(token).collect();
    assert_eq!(tokens.len(), 604);
    assert!(tokens.is_sorted_by(|one, next| one < next));
    assert_eq!(client.only("job").token, tokens.last().copied());
    // There too what only a connection can have is refused.
    let script = "return redis.pcall('RLOCK.RENEW', KEYS[1], 'alice', 60000, 'TOKEN', 'WATCHDOG')";
    let error = client.error(&["EVAL", script, "1", "job"]);
    assert!(error.contains("WATCHDOG binds a hold"), "{error}");
}

#[test]
fn with_a_watchdog_and_a_tag_it_is_one_step() {
    let server = Server::start();
    let mut session = Session::new(&server);
    let first = session.hold("job", "alice", "WATCHDOG", "t");
    let renewed = session.ask(&format!("{RENEW} WATCHDOG TOKEN"), "u");
    let Value::Int(token) = renewed else {
        panic!("{renewed:?}");
    };
    assert!(token > first);
    assert_eq!(session.about("t"), "lost t rebound");
    let mut client = server.raw();
    assert_eq!(client.only("job").token, Some(token));
    assert!(client.watchdog("job").is_some());
    client.int("RLOCK.FORCE job");
    assert_eq!(session.about("u"), "lost u forced");
    session.is_quiet();
}

#[test]
fn nobody_who_waits_is_let_in_by_it() {
    let server = Server::start();
    let mut client = server.raw();
    client.take("job", "alice");
    let mut waiter = Waiter::new(&server, "job", "bob");
    client.has_waiters("job", 1);
    let token = client.int(&format!("{RENEW} TOKEN"));
    assert_eq!(client.waiters("job"), 1);
    client.int(&format!("RLOCK.RELEASE job alice IFTOKEN {token}"));
    assert!(waiter.token() > token);
}

#[test]
fn while_the_counter_is_away_it_is_to_be_asked_again() {
    let (one, two) = two_nodes_with_counters();
    let mut slot = Move::before("job", &one, &two);
    let first = slot.here.take("job", "alice");
    slot.begin();
    slot.over(COUNTER);
    let before = slot.here.state(b"job");
    let reply = slot.here.ask(&format!("{RENEW} TOKEN"));
    assert!(is_try_again(&reply), "{reply:?}");
    assert_eq!(slot.here.state(b"job"), before);
    assert_eq!(slot.here.only("job").token, Some(first));
    slot.over("job");
    slot.arrive();
    let token = slot.there.int(&format!("{RENEW} TOKEN"));
    assert!(token > first);
    assert_eq!(
        slot.there.text(&format!("GET {COUNTER}")),
        token.to_string()
    );
}
