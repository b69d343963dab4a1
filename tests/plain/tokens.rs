//! Fencing tokens: when they are new, and that new ones rise.

use redis::Value;

use crate::support::{eventually, now_us, Ask, RawClient, Server, Waiter};

#[test]
fn they_rise_over_all_locks_databases_and_connections() {
    let server = Server::start();
    let mut clients: Vec<RawClient> = (0..4).map(|_| server.raw()).collect();
    for (db, client) in clients.iter_mut().enumerate() {
        client.ok(&format!("SELECT {}", db % 3));
    }
    let mut last = 0;
    for round in 0..200 {
        let client = &mut clients[round % 4];
        let before = now_us();
        let token = client.int(&format!("RLOCK.ACQUIRE job:{round} owner:{round} 60000"));
        assert!(token > last, "{token} after {last}");
        assert!(token >= before, "{token} at {before}");
        assert!(token <= now_us(), "{token} at {}", now_us());
        last = token;
    }
}

#[test]
fn they_rise_within_one_pipeline_transaction_and_script() {
    let server = Server::start();
    let mut client = server.raw();
    let requests: Vec<[String; 4]> = (0..2000)
        .map(|n| ["RLOCK.ACQUIRE", &format!("p:{n}"), "alice", "60000"].map(str::to_owned))
        .collect();
    let requests: Vec<&[String]> = requests.iter().map(<[String; 4]>::as_slice).collect();
    client.send_all(&requests);
    let mut replies = client.read_many(2000);
    client.ok("MULTI");
    for number in 0..200 {
        client.text(&format!("RLOCK.ACQUIRE m:{number} alice 60000"));
    }
    replies.extend(client.list("EXEC"));
    let script = "local tokens = {} for n = 1, 200 do tokens[n] = \
                  redis.call('RLOCK.ACQUIRE', 's:' .. n, 'alice', 60000) end return tokens";
    replies.extend(client.list(&["EVAL", script, "0"]));
    replies.push(client.ask("RLOCK.ACQUIRE last alice 60000"));
    let tokens: Vec<i64> = replies
        .into_iter()
        .map(|reply| match reply {
            Value::Int(token) => token,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tokens.len(), 2401);
    assert!(tokens.is_sorted_by(|one, next| one < next));
    assert!(tokens[2400] < 1 << 53);
}

#[test]
fn a_nested_hold_has_that_of_the_hold_under_way() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(client.only("job").token, Some(token));
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 1"), token);
    assert_eq!(
        server.raw().int("RLOCK.ACQUIRE job alice 90000 BLOCK 0"),
        token
    );
    client.int("RLOCK.RENEW job alice 30000");
    client.int("RLOCK.RELEASE job alice");
    // Others come and go meanwhile.
    assert!(client.int("RLOCK.ACQUIRE other alice 1000") > token);
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 1000"), token);
    client.ok("MULTI");
    client.text("RLOCK.ACQUIRE job alice 1000");
    assert_eq!(client.ask("EXEC"), Value::Array(vec![Value::Int(token)]));
    assert_eq!(client.only("job").token, Some(token));
}

#[test]
fn after_the_lock_was_lost_it_is_a_new_one() {
    let server = Server::start();
    let mut client = server.raw();
    let mut token = client.int("RLOCK.ACQUIRE job alice 40");
    eventually("the lease is over", || client.int("EXISTS job") == 0);
    let mut acquire = |client: &mut RawClient, why: &str| {
        let new = client.int("RLOCK.ACQUIRE job alice 60000");
        assert!(new > token, "after {why}: {new} after {token}");
        assert_eq!(client.int("RLOCK.ACQUIRE job alice 1"), new, "after {why}");
        token = new;
    };
    acquire(&mut client, "expiry");
    for request in [
        "RLOCK.RELEASE job alice ALL",
        "RLOCK.FORCE job",
        "DEL job",
        "UNLINK job",
        "FLUSHALL",
        "PEXPIREAT job 1",
        "RENAME job elsewhere",
        "MOVE job 1",
        "SWAPDB 0 2",
    ] {
        client.ask(request);
        acquire(&mut client, request);
    }
    // Somebody else's hold came between, under the same name as it happens.
    client.int("DEL job");
    client.succeed(&["HSET job alice 1", "PEXPIRE job 50000"]);
    acquire(&mut client, "DEL and HSET");
}

#[test]
fn the_next_holder_has_a_greater_one() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.int("RLOCK.ACQUIRE job alice 60000");
    let mut waiters = Vec::new();
    for number in 0..5 {
        let args = format!("job owner:{number} 60000 BLOCK 0");
        waiters.push(Waiter::with(&server, &args));
        assert_eq!(client.waiters("job"), number + 1);
    }
    // Tokens are those of the grant, not of the request.
    let mut last = client.int("RLOCK.ACQUIRE other alice 60000");
    assert!(last > first);
    client.int("RLOCK.RELEASE job alice");
    for (number, mut waiter) in waiters.into_iter().enumerate() {
        let token = waiter.token();
        assert!(token > last, "{token} after {last}");
        assert_eq!(client.only("job").token, Some(token));
        last = token;
        client.int(&format!("RLOCK.RELEASE job owner:{number}"));
    }
}

#[test]
fn a_hold_that_redisson_took_gets_one_when_it_nests() {
    let server = Server::start();
    let mut client = server.raw();
    let last = client.int("RLOCK.ACQUIRE other alice 60000");
    client.int("HSET job uuid:1 1");
    client.int("PEXPIRE job 60000");
    assert_eq!(client.only("job").token, None);
    let token = client.int("RLOCK.ACQUIRE job uuid:1 1000");
    assert!(token > last);
    assert_eq!(client.only("job").token, Some(token));
    assert_eq!(client.int("RLOCK.ACQUIRE job uuid:1 1000"), token);
}

#[test]
fn after_a_restart_a_hold_gets_a_new_greater_one() {
    let mut server = Server::start_with(&["--appendonly", "yes"]);
    let mut client = server.raw();
    let token = client.int("RLOCK.ACQUIRE job alice 3600000");
    server.restart();
    let mut client = server.raw();
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
    assert_eq!(client.only("job").token, None);
    let new = client.int("RLOCK.ACQUIRE job alice 1000");
    assert!(new > token, "{new} after {token}");
    assert_eq!(client.texts("HGETALL job"), ["alice", "2"]);
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 1000"), new);
    assert!(client.int("RLOCK.ACQUIRE other bob 1000") > new);
}

#[test]
fn a_renamed_lock_keeps_its_own() {
    let server = Server::start_observed();
    let mut client = server.raw();
    let token = client.int("RLOCK.ACQUIRE job alice 60000");
    client.ok("RENAME job task");
    assert_eq!(client.int("RLOCK.ACQUIRE task alice 1"), token);
    assert_eq!(client.int("MOVE task 1"), 1);
    client.ok("SELECT 1");
    assert_eq!(client.int("RLOCK.ACQUIRE task alice 1"), token);
    client.ok("SWAPDB 1 2");
    client.ok("SELECT 2");
    assert_eq!(client.int("RLOCK.ACQUIRE task alice 1"), token);
    assert_eq!(client.texts("HGETALL task"), ["alice", "4"]);
}

#[test]
fn a_lock_that_was_renamed_and_lost_at_once_is_a_new_one() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.int("RLOCK.ACQUIRE job alice 60000");
    client.succeed(&[
        "MULTI",
        "RENAME job task",
        "DEL task",
        "HSET task alice 1",
        "PEXPIRE task 60000",
        "EXEC",
    ]);
    assert!(client.int("RLOCK.ACQUIRE task alice 60000") > token);
}
