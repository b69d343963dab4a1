//! The fencing counter of Redisson's RFencedLock: where a lock has one beside it, the
//! tokens of both rise together.

use crate::support::{cluster, error, eventually, Ask, Listener, RawClient, Server, Waiter};

/// Far beyond the clock, in the year 2255, as if that had been set back since.
pub const AHEAD: i64 = 9_000_000_000_000_000;

pub fn counter(key: &str) -> String {
    format!("redisson_lock_token:{{{key}}}")
}

/// What RFencedLock runs to take a lock: its token, or -1.
fn lock_as_redisson(client: &mut RawClient, key: &str, owner: &str) -> i64 {
    let script = "if redis.call('exists', KEYS[1]) == 0 then \
                  local token = redis.call('incr', KEYS[2]) \
                  redis.call('hincrby', KEYS[1], ARGV[1], 1) \
                  redis.call('pexpire', KEYS[1], 60000) return token end return -1";
    client.int(&["EVAL", script, "2", key, &counter(key), owner])
}

fn kept(client: &mut RawClient, key: &str) -> i64 {
    let text = client.text(&format!("GET {}", counter(key)));
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn no_counter_is_made_unless_it_is_asked_for() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    client.int("RLOCK.MACQUIRE 2 a b alice 60000");
    let mut keys = client.texts("KEYS *");
    keys.sort();
    assert_eq!(
        keys,
        ["a", "b", "doc", "job", "{doc}:alice:rwlock_timeout:1"]
    );
    assert_eq!(client.texts("CONFIG GET rlock.fencing")[1], "clock");
}

#[test]
fn tokens_of_both_rise_together_also_when_the_clock_is_behind() {
    let server = Server::start();
    let mut client = server.raw();
    for start in [0, AHEAD] {
        client.ok(&format!("SET {} {start}", counter("job")));
        let mut last = start;
        for round in 0..50 {
            let token = if round % 2 == 0 {
                lock_as_redisson(&mut client, "job", "uuid:1")
            } else {
                client.int("RLOCK.ACQUIRE job alice 60000")
            };
            assert!(token > last, "{token} after {last}");
            assert_eq!(kept(&mut client, "job"), token);
            let owner = if round % 2 == 0 { "uuid:1" } else { "alice" };
            client.int(&format!("RLOCK.RELEASE job {owner}"));
            last = token;
        }
        // Where it is not ahead, the clock is what rlock's tokens go by.
        assert!(last > 1_700_000_000_000_000, "{last}");
    }
}

#[test]
fn a_nested_hold_leaves_it_alone_and_a_refused_one_too() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(&format!("SET {} 7", counter("job")));
    let token = client.int("RLOCK.ACQUIRE job alice 60000");
    let before = client.state(counter("job").as_bytes());
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 60000"), token);
    assert!(client.refused("RLOCK.ACQUIRE job bob 60000"));
    client.int("RLOCK.RENEW job alice 90000");
    client.int("RLOCK.RELEASE job alice ALL");
    assert_eq!(client.state(counter("job").as_bytes()), before);
    assert_eq!(kept(&mut client, "job"), token);
}

#[test]
fn whoever_is_granted_after_a_wait_draws_from_it_too() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(&format!("SET {} {AHEAD}", counter("job")));
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 60000"), AHEAD + 1);
    let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
    assert!(client.refused("RLOCK.ACQUIRE job x 1"));
    assert_eq!(client.waiters("job"), 1);
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(waiter.token(), AHEAD + 2);
    assert_eq!(kept(&mut client, "job"), AHEAD + 2);
}

#[test]
fn one_token_of_several_keys_is_above_every_counter_and_written_to_each() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(&format!("SET {} 5", counter("a")));
    client.ok(&format!("SET {} {AHEAD}", counter("b")));
    let token = client.int("RLOCK.MACQUIRE 3 a b c alice 60000");
    assert_eq!(token, AHEAD + 1);
    assert_eq!(kept(&mut client, "a"), token);
    assert_eq!(kept(&mut client, "b"), token);
    assert_eq!(client.int(&format!("EXISTS {}", counter("c"))), 0);
    client.int("RLOCK.MRELEASE 3 a b c alice");
    // And so it is for one that waits.
    client.int("RLOCK.ACQUIRE b bob 60000");
    let mut waiter = Waiter::by(&server, "RLOCK.MACQUIRE 2 a b carol 60000 BLOCK 0");
    assert_eq!(client.waiters("b"), 1);
    client.int("RLOCK.RELEASE b bob");
    assert_eq!(waiter.token(), AHEAD + 3);
    assert_eq!(kept(&mut client, "a"), AHEAD + 3);
    assert_eq!(kept(&mut client, "b"), AHEAD + 3);
}

#[test]
fn so_it_is_where_one_of_the_keys_is_held_already() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.int("RLOCK.ACQUIRE a alice 60000");
    client.ok(&format!("SET {} {AHEAD}", counter("a")));
    assert_eq!(client.int("RLOCK.MACQUIRE 2 a b alice 60000"), AHEAD + 1);
    assert_eq!(kept(&mut client, "a"), AHEAD + 1);
    // The hold under way keeps the token that it has.
    assert_eq!(client.int("RLOCK.ACQUIRE a alice 60000"), first);
    assert_eq!(client.int("RLOCK.ACQUIRE b alice 60000"), AHEAD + 1);
}

#[test]
fn the_setting_gives_one_to_every_lock_of_any_mode() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.fencing counter");
    let plain = client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(kept(&mut client, "job"), plain);
    let read = client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    assert_eq!(kept(&mut client, "doc"), read);
    let joined = client.int("RLOCK.ACQUIRE doc bob 60000 READ");
    assert_eq!(kept(&mut client, "doc"), joined);
    client.int("RLOCK.RELEASE doc bob READ");
    let upgraded = client.int("RLOCK.ACQUIRE doc alice 60000 WRITE");
    assert_eq!(kept(&mut client, "doc"), upgraded);
    let many = client.int("RLOCK.MACQUIRE 2 a b alice 60000");
    assert_eq!(kept(&mut client, "a"), many);
    assert_eq!(kept(&mut client, "b"), many);
    let line = client.error("CONFIG SET rlock.fencing perhaps");
    assert!(line.starts_with("ERR"), "{line}");
    // A name with a hash tag is used as it is.
    let tagged = client.int("RLOCK.ACQUIRE {acct}:7 alice 60000");
    assert_eq!(
        client.text("GET redisson_lock_token:{acct}:7"),
        tagged.to_string()
    );
}

#[test]
fn it_keeps_its_ttl_and_its_event_is_announced() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(&format!("SET {} 1 PX 5000000", counter("job")));
    let ends = client.deadline(&counter("job"));
    let mut heard = Listener::keyspace(&server, 0);
    let token = client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(kept(&mut client, "job"), token);
    assert_eq!(client.deadline(&counter("job")), ends);
    let set = ("set".to_owned(), counter("job"));
    assert_eq!(
        heard.events().iter().filter(|event| **event == set).count(),
        1
    );
}

#[test]
fn it_reaches_replicas_and_the_log_and_outlives_a_restart() {
    let mut server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut client = server.raw();
    client.ok(&format!("SET {} {AHEAD}", counter("job")));
    let replica = Server::start_replica_of(&server);
    let mut copy = replica.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    let last = client.int("RLOCK.ACQUIRE job alice 60000");
    eventually("the replica has it", || kept(&mut copy, "job") == last);
    server.kill();
    server.start_again();
    let mut client = server.raw();
    assert_eq!(kept(&mut client, "job"), last);
    client.int("RLOCK.FORCE job");
    assert_eq!(client.int("RLOCK.ACQUIRE job bob 60000"), last + 1);
    // A replica that becomes the master goes on from there.
    copy.ok("REPLICAOF NO ONE");
    copy.int("DEL job");
    assert_eq!(copy.int("RLOCK.ACQUIRE job carol 60000"), last + 1);
}

#[test]
fn what_is_no_counter_is_named_and_nothing_changes() {
    let server = Server::start();
    let mut client = server.raw();
    for make in [
        "RPUSH redisson_lock_token:{job} x".to_owned(),
        "SET redisson_lock_token:{job} abc".to_owned(),
        "SET redisson_lock_token:{job} 1.5".to_owned(),
        format!("SET redisson_lock_token:{{job}} {}", i64::MAX),
        // One more, and it would not fit in 53 bits.
        format!("SET redisson_lock_token:{{job}} {}", (1_i64 << 53) - 1),
    ] {
        client.int(&format!("DEL {}", counter("job")));
        client.ask(&make);
        let before = client.state(counter("job").as_bytes());
        let line = client.error("RLOCK.ACQUIRE job alice 60000");
        assert!(line.starts_with("WRONGTYPE"), "{make}: {line}");
        assert!(line.contains("'job'"), "{line}");
        let line = client.error("RLOCK.MACQUIRE 2 free job alice 60000");
        assert!(line.starts_with("WRONGTYPE"), "{make}: {line}");
        let line = client.error("RLOCK.ACQUIRE job alice 60000 READ");
        assert!(line.starts_with("WRONGTYPE"), "{make}: {line}");
        assert_eq!(client.int("EXISTS job free"), 0, "{make}");
        assert_eq!(client.state(counter("job").as_bytes()), before);
    }
}

#[test]
fn of_several_keys_that_are_all_held_none_nests_if_a_counter_is_refused() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE a alice 60000");
    // Redisson's own, so that rlock knows no token of it.
    client.int("HSET b alice 1");
    client.int("PEXPIRE b 60000");
    client.ok(&format!("SET {} abc", counter("b")));
    let line = client.error("RLOCK.MACQUIRE 2 a b alice 60000");
    assert!(line.starts_with("WRONGTYPE"), "{line}");
    assert_eq!(client.text("HGET a alice"), "1");
    assert_eq!(client.text("HGET b alice"), "1");
}

#[test]
fn a_waiter_that_finds_no_counter_gets_the_error_and_the_next_the_lock() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut waiters = ["w0", "w1"].map(|owner| Waiter::new(&server, "job", owner));
    assert_eq!(client.waiters("job"), 2);
    client.ok(&format!("SET {} abc", counter("job")));
    client.int("RLOCK.RELEASE job alice");
    for waiter in &mut waiters {
        let line = error(waiter.client.read());
        assert!(line.starts_with("WRONGTYPE"), "{line}");
    }
    assert_eq!(client.int("EXISTS job"), 0);
    client.int(&format!("DEL {}", counter("job")));
    client.int("RLOCK.ACQUIRE job bob 60000");
}

#[test]
fn in_a_cluster_it_lies_in_the_slot_of_its_lock_or_is_none() {
    let server = cluster();
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.fencing counter");
    let token = client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(kept(&mut client, "job"), token);
    let slot = client.int("CLUSTER KEYSLOT job");
    assert_eq!(
        client.int(&format!("CLUSTER KEYSLOT {}", counter("job"))),
        slot
    );
    // What stands before an empty tag counts: the counter would lie elsewhere.
    client.int("RLOCK.ACQUIRE a{} alice 60000");
    assert_eq!(client.int("EXISTS redisson_lock_token:a{}"), 0);
}

#[test]
fn without_one_a_name_that_has_been_used_can_be_given_one() {
    let server = Server::start();
    let mut client = server.raw();
    let before = client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    // As the docs say: before the first RFencedLock on the name.
    client.ok("CONFIG SET rlock.fencing counter");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    client.ok("CONFIG SET rlock.fencing clock");
    let first = lock_as_redisson(&mut client, "job", "uuid:1");
    assert!(first > before, "{first} after {before}");
    client.int("RLOCK.RELEASE job uuid:1");
    assert!(client.int("RLOCK.ACQUIRE job alice 60000") > first);
}

/// The names of counters that were looked for are remembered, by the last byte of the lock's.
#[test]
fn each_lock_heeds_its_own_counter_whenever_that_comes_and_goes() {
    let server = Server::start();
    let mut client = server.raw();
    let long = "long".repeat(100);
    let locks = ["job", "b", "{b}", "x{b}", "xb", "bb", &long];
    for round in 0..3 {
        for lock in locks {
            let name = if lock.contains('{') {
                format!("redisson_lock_token:{lock}")
            } else {
                counter(lock)
            };
            client.ok(&format!("SET {name} {AHEAD}"));
            for others in locks.iter().filter(|other| **other != lock) {
                client.int(&format!("RLOCK.ACQUIRE {others} alice 60000"));
                client.int(&format!("RLOCK.RELEASE {others} alice"));
            }
            let before = client.text(&format!("GET {name}"));
            let token = client.int(&format!("RLOCK.ACQUIRE {lock} alice 60000"));
            let after = client.text(&format!("GET {name}"));
            assert_eq!(after, token.to_string(), "{lock} in round {round}");
            assert!(token >= AHEAD && before != after);
            client.int(&format!("RLOCK.RELEASE {lock} alice"));
            client.int(&format!("DEL {name}"));
        }
    }
}

#[test]
fn a_lock_by_the_name_of_a_counter_is_left_alone() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.fencing counter");
    client.int("RLOCK.MACQUIRE 2 a redisson_lock_token:{a} alice 60000");
    assert_eq!(
        client.int("RLOCK.MRELEASE 2 a redisson_lock_token:{a} alice"),
        2
    );
}
