//! Holds of one owner on one lock: how they count, and what becomes of the
//! lease. Also what BLOCK means where nobody may wait.

use redis::Value;

use crate::support::{bulk, error, eventually, lease_from, now_ms, Ask, Server, Waiter};

#[test]
fn holds_count_up_and_down() {
    let server = Server::start();
    let mut clients = [server.raw(), server.raw()];
    for count in 1..=20 {
        let client = &mut clients[count % 2];
        client.int("RLOCK.ACQUIRE job alice 60000");
        assert_eq!(client.texts("HGETALL job"), ["alice", &count.to_string()]);
    }
    for left in (0..20).rev() {
        assert!(clients[0].refused("RLOCK.ACQUIRE job bob 60000"));
        assert_eq!(
            clients[left % 2].int("RLOCK.RELEASE job alice"),
            left as i64
        );
    }
    assert_eq!(clients[0].int("EXISTS job"), 0);
}

#[test]
fn nesting_lengthens_the_lease_and_never_shortens_it() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    let deadline = client.deadline("job");
    for lease in [1, 30_000] {
        client.int(&format!("RLOCK.ACQUIRE job alice {lease}"));
        assert_eq!(client.deadline("job"), deadline);
    }
    let (_, ends) = lease_from(120_000, || client.int("RLOCK.ACQUIRE job alice 120000"));
    let longer = client.deadline("job");
    assert!(ends.contains(&longer), "{longer} in {ends:?}");
    client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(client.deadline("job"), longer);
    // To the ms: what is equal to the lease under way is no lengthening.
    client.ok("MULTI");
    client.text("RLOCK.RENEW job alice 50000");
    client.text("RLOCK.ACQUIRE job alice 50000");
    client.ask("EXEC");
    assert_eq!(client.texts("HGETALL job"), ["alice", "6"]);
}

#[test]
fn releasing_a_nested_hold_leaves_its_lease() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 1000");
    client.int("RLOCK.ACQUIRE job alice 60000");
    let deadline = client.deadline("job");
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    assert_eq!(client.deadline("job"), deadline);
}

#[test]
fn renewing_sets_the_lease_of_all_holds() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.ACQUIRE job alice 120000");
    let (_, ends) = lease_from(5_000, || client.int("RLOCK.RENEW job alice 5000"));
    assert!(ends.contains(&client.deadline("job")));
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    assert!(ends.contains(&client.deadline("job")));
    // A nested hold measures against the lease as it is now.
    let (_, ends) = lease_from(20_000, || client.int("RLOCK.ACQUIRE job alice 20000"));
    assert!(ends.contains(&client.deadline("job")));
}

#[test]
fn once_gives_the_hold_under_way_and_adds_none() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.token("RLOCK.ACQUIRE job alice 60000 ONCE");
    let before = client.state(b"job");
    let changes = client.changes();
    for options in ["ONCE", "BLOCK 0 ONCE", "ONCE BLOCK 60000"] {
        let request = format!("RLOCK.ACQUIRE job alice 1000 {options}");
        assert_eq!(client.int(&request), token, "{options}");
    }
    // A shorter lease shortens nothing, a longer one is the lease from then on.
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.changes(), changes);
    let (again, ends) = lease_from(90_000, || client.int("RLOCK.ACQUIRE job alice 90000 ONCE"));
    assert_eq!(again, token);
    assert!(ends.contains(&client.deadline("job")));
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
    assert!(client.refused("RLOCK.ACQUIRE job bob 60000 ONCE"));
    // It speaks for one request only.
    client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(client.texts("HGETALL job"), ["alice", "2"]);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 1 ONCE"), token);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    assert!(client.int("RLOCK.ACQUIRE job alice 60000 ONCE") > token);
}

#[test]
fn a_persisted_lock_has_no_lease_until_it_is_renewed() {
    let server = Server::start();
    let mut client = server.raw();
    let (_, ends) = lease_from(50, || {
        client.succeed(&["RLOCK.ACQUIRE job alice 50", "PERSIST job"])
    });
    client.int("RLOCK.ACQUIRE job alice 50");
    assert_eq!(client.int("PTTL job"), -1);
    eventually("its lease would be over", || now_ms() > ends.end() + 60);
    client.int("RLOCK.ACQUIRE other alice 20");
    eventually("another lease is over", || client.int("EXISTS other") == 0);
    assert_eq!(client.texts("HGETALL job"), ["alice", "2"]);
    assert!(client.refused("RLOCK.ACQUIRE job bob 1000"));
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    assert_eq!(client.int("PTTL job"), -1);
    let (replies, ends) = lease_from(60, || {
        client.succeed(&["RLOCK.RENEW job alice 60", "PEXPIRETIME job"])
    });
    assert!(matches!(replies[1], Value::Int(at) if ends.contains(&at)));
    eventually("the new lease is over", || client.int("EXISTS job") == 0);
    assert!(now_ms() > *ends.start());
}

#[test]
fn a_lease_that_was_changed_by_hand_is_taken_as_it_is() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 3600000");
    client.int("RLOCK.ACQUIRE job alice 3600000");
    let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    // So that nobody but rlock ends it.
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    assert_eq!(client.int("PEXPIRE job 40"), 1);
    waiter.token();
    assert_eq!(client.texts("HGETALL job"), ["bob", "1"]);

    // Longer by hand: a nested hold does not shorten that either.
    let end = now_ms() + 7_200_000;
    assert_eq!(client.int(&format!("PEXPIREAT job {end}")), 1);
    client.int("RLOCK.ACQUIRE job bob 60000");
    assert_eq!(client.deadline("job"), end);
}

#[test]
fn it_nests_at_once_while_others_wait() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.int("RLOCK.ACQUIRE job alice 3600000");
    let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 1 BLOCK 0"), token);
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 1"), token);
    assert_eq!(client.texts("HGETALL job"), ["alice", "3"]);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 2);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    assert_eq!(client.waiters("job"), 1, "bob waits for the last hold");
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    let new = waiter.token();
    assert!(new > token);
}

#[test]
fn transactions_scripts_and_functions_do_not_wait() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 3600000");
    let library = "#!lua name=rlocktest\n\
        redis.register_function('put', function(keys, args) \
        return redis.pcall(unpack(args)) end)";
    client.ask(&["FUNCTION", "LOAD", library]);
    let ways: [&[&str]; 2] = [
        &["EVAL", "return redis.call(unpack(ARGV))", "0"],
        &["FCALL", "put", "0"],
    ];
    let waits: &[&str] = &["RLOCK.ACQUIRE", "job", "bob", "1000", "BLOCK", "0"];
    let nests: &[&str] = &["RLOCK.ACQUIRE", "job", "alice", "1000", "BLOCK", "0"];
    client.ok("MULTI");
    for request in [waits, nests, waits] {
        assert_eq!(client.text(request), "QUEUED");
    }
    let replies = client.list("EXEC");
    assert_eq!(replies[0], Value::Nil);
    assert!(matches!(replies[1], Value::Int(_)));
    assert_eq!(replies[2], Value::Nil);
    for way in ways {
        assert!(client.refused(&[way, waits].concat()));
        client.token(&[way, nests].concat());
        client.ok("MULTI");
        client.ask(&[way, waits].concat());
        assert_eq!(client.ask("EXEC"), Value::Array(vec![Value::Nil]));
    }
    assert_eq!(client.texts("HGETALL job"), ["alice", "4"]);
    // Nothing was left in the queue.
    assert_eq!(client.waiters("job"), 0);
    assert_eq!(client.int("RLOCK.RELEASE job alice ALL"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
}

#[test]
fn transactions_and_scripts_lock_as_commands_do() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("MULTI");
    for request in [
        "RLOCK.ACQUIRE job alice 60000",
        "RLOCK.ACQUIRE job alice 60000",
        "RLOCK.ACQUIRE job bob 60000",
        "RLOCK.RELEASE job bob",
        "RLOCK.RELEASE job alice",
        "HGETALL job",
        "RLOCK.RENEW job alice 90000",
        "RLOCK.RELEASE job alice",
        "RLOCK.ACQUIRE job bob 60000",
    ] {
        assert_eq!(client.text(request), "QUEUED");
    }
    let replies = client.list("EXEC");
    let Value::Int(token) = replies[0] else {
        panic!("{replies:?}");
    };
    assert_eq!(replies[1..3], [Value::Int(token), Value::Nil]);
    assert!(error(replies[3].clone()).starts_with("NOTHELD "));
    let alice = Value::Array(vec![bulk("alice"), bulk("1")]);
    let then = [Value::Int(1), alice, Value::Int(1), Value::Int(0)];
    assert_eq!(replies[4..8], then);
    assert!(matches!(replies[8], Value::Int(new) if new > token));

    let script = "local token = redis.call('RLOCK.ACQUIRE', KEYS[1], ARGV[1], 60000) \
        local other = redis.call('RLOCK.ACQUIRE', KEYS[1], 'other', 60000) \
        local fields = redis.call('HGETALL', KEYS[1]) \
        return {token, tostring(other), fields, redis.call('RLOCK.RELEASE', KEYS[1], ARGV[1])}";
    let replies = client.list(&["EVAL", script, "1", "task", "carol"]);
    assert!(matches!(replies[0], Value::Int(new) if new > token));
    let carol = Value::Array(vec![bulk("carol"), bulk("1")]);
    assert_eq!(replies[1..], [bulk("false"), carol, Value::Int(0)]);
    assert_eq!(client.int("EXISTS task"), 0);
}
