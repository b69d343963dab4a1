//! Clients that know nothing of rlock share a read/write lock with it, by the same
//! keys: Redisson's, spoken here by hand.

use redis::Value;

use crate::support::{
    both_ways, int, lease_key, list, longest, now_ms, Ask, RawClient, Server, Way, LONG,
};

/// Takes a read lock as Redisson does; the hash outlives the lease, as it does
/// where another reader's is longer.
#[track_caller]
fn foreign_read(client: &mut RawClient, key: &str, owner: &str, ms: i64) {
    let lease = lease_key(key, owner, 1);
    client.succeed(&[
        "MULTI",
        &format!("HSET {key} mode read {owner} 1"),
        &format!("SET {lease} 1 PX {ms}"),
        &format!("PEXPIRE {key} {LONG}"),
        "EXEC",
    ]);
}

#[track_caller]
fn foreign_write(client: &mut RawClient, key: &str, owner: &str) {
    client.succeed(&[
        "MULTI",
        &format!("HSET {key} mode write {owner}:write 1"),
        &format!("PEXPIRE {key} {LONG}"),
        "EXEC",
    ]);
}

/// RedissonReadLock: null when it was taken, else the ms that are left.
const READ: &str = "
    local mode = redis.call('hget', KEYS[1], 'mode')
    if mode == false then
        redis.call('hset', KEYS[1], 'mode', 'read')
        redis.call('hset', KEYS[1], ARGV[2], 1)
        redis.call('set', KEYS[2] .. ':1', 1)
        redis.call('pexpire', KEYS[2] .. ':1', ARGV[1])
        redis.call('pexpire', KEYS[1], ARGV[1])
        return nil
    end
    if mode == 'read' or
        (mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 1) then
        local key = KEYS[2] .. ':' .. redis.call('hincrby', KEYS[1], ARGV[2], 1)
        redis.call('set', key, 1)
        redis.call('pexpire', key, ARGV[1])
        local left = redis.call('pttl', KEYS[1])
        redis.call('pexpire', KEYS[1], math.max(left, ARGV[1]))
        return nil
    end
    return redis.call('pttl', KEYS[1])";

/// RedissonWriteLock, the same.
const WRITE: &str = "
    local mode = redis.call('hget', KEYS[1], 'mode')
    if mode == false then
        redis.call('hset', KEYS[1], 'mode', 'write')
        redis.call('hset', KEYS[1], ARGV[2] .. ':write', 1)
        redis.call('pexpire', KEYS[1], ARGV[1])
        return nil
    end
    if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 1 then
        redis.call('hincrby', KEYS[1], ARGV[2] .. ':write', 1)
        redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[1])
        return nil
    end
    return redis.call('pttl', KEYS[1])";

#[track_caller]
fn redisson(client: &mut RawClient, script: &str, key: &str, owner: &str) -> Value {
    let prefix = format!("{{{key}}}:{owner}:rwlock_timeout");
    client.ask(&["EVAL", script, "2", key, &prefix, "50000", owner])
}

#[test]
fn each_sees_the_others_holds() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "native");
    assert_eq!(redisson(&mut client, READ, "doc", "uuid:1"), Value::Nil);
    let left = int(redisson(&mut client, WRITE, "doc", "uuid:2"));
    assert!((1..=longest(LONG)).contains(&left), "{left}");
    assert_eq!(client.held_by("doc"), "native read 1, uuid:1 read 1");
    client.take_read("doc", "other");
    client.int("RLOCK.RELEASE doc other READ");
    assert!(client.refused("RLOCK.ACQUIRE doc w 1000 WRITE"));
    // Its holds can be renewed, nested and released here.
    assert_eq!(redisson(&mut client, READ, "doc", "uuid:1"), Value::Nil);
    assert_eq!(client.int("RLOCK.RENEW doc uuid:1 70000 READ"), 1);
    let found = client.leases("doc", "uuid:1");
    assert!(found.len() == 2 && found[0] == found[1], "{found:?}");
    client.take_read("doc", "uuid:1");
    assert_eq!(client.int("RLOCK.RELEASE doc uuid:1 READ"), 2);
    assert_eq!(client.int("RLOCK.RELEASE doc uuid:1 READ ALL"), 0);
    assert_eq!(client.int("RLOCK.RELEASE doc native READ"), 0);
    assert_eq!(client.int("DBSIZE"), 0);

    client.take_write("doc", "native");
    for script in [READ, WRITE] {
        int(redisson(&mut client, script, "doc", "uuid:1"));
    }
    // One owner on both sides nests.
    assert_eq!(redisson(&mut client, WRITE, "doc", "native"), Value::Nil);
    assert_eq!(redisson(&mut client, READ, "doc", "native"), Value::Nil);
    let both = "mode=write native:write=2 native=1";
    assert_eq!(client.hash("doc"), both);
    assert_eq!(client.int("RLOCK.RELEASE doc native WRITE ALL"), 0);
    assert_eq!(client.int("RLOCK.RELEASE doc native READ"), 0);

    assert_eq!(redisson(&mut client, WRITE, "doc", "uuid:1"), Value::Nil);
    for wanted in ["READ", "WRITE", ""] {
        let request = format!("RLOCK.ACQUIRE doc native 1000 {wanted}");
        assert!(client.refused(&request), "{request}");
    }
    assert_eq!(client.held_by("doc"), "uuid:1 write 1");
    assert_eq!(client.mode("doc"), "write");
    assert_eq!(client.int("RLOCK.RELEASE doc uuid:1 WRITE"), 0);
    assert_eq!(client.int("DBSIZE"), 0);
}

both_ways!(a_foreign_reader_keeps_a_writer_out_until_its_lease_ends);
fn a_foreign_reader_keeps_a_writer_out_until_its_lease_ends(by: Way) {
    let server = Server::start_with(&["--hz", "1"]);
    let mut client = server.raw();
    foreign_read(&mut client, "doc", "uuid:1", LONG);
    let key = lease_key("doc", "uuid:1", 1);
    let mut writer = by.write(&server, "doc", "w");
    assert!(client.refused("RLOCK.ACQUIRE doc r 1000 READ"));
    let replies = client.succeed(&[&format!("PEXPIRE {key} 400"), &format!("PEXPIRETIME {key}")]);
    writer.token();
    assert!(now_ms() >= int(replies[1].clone()), "not before");
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
}

both_ways!(a_foreign_readers_lease_is_known_when_the_writer_comes);
fn a_foreign_readers_lease_is_known_when_the_writer_comes(by: Way) {
    let server = Server::start_with(&["--hz", "1"]);
    let mut client = server.raw();
    foreign_read(&mut client, "doc", "uuid:1", 700);
    let mut writer = by.write(&server, "doc", "w");
    writer.token();
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
}

both_ways!(a_foreign_reader_that_leaves_lets_the_writer_in);
fn a_foreign_reader_that_leaves_lets_the_writer_in(by: Way) {
    let server = Server::start();
    let ends = format!("DEL {}", lease_key("doc", "uuid:1", 1));
    let ways: [&[&str]; 4] = [
        &["HINCRBY doc uuid:1 -1", "HDEL doc uuid:1", &ends, "DEL doc"],
        &["HDEL doc uuid:1", &ends],
        &[&ends],
        &["HDEL doc uuid:1"],
    ];
    for way in ways {
        println!("{way:?}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        foreign_read(&mut client, "doc", "uuid:1", LONG);
        let mut writer = by.write(&server, "doc", "w");
        client.succeed(&[&["MULTI"], way, &["EXEC"]].concat());
        writer.token();
        assert_eq!(client.hash("doc"), "mode=write w:write=1", "{way:?}");
    }
}

both_ways!(a_foreign_reader_beside_native_ones_leaves_alone);
fn a_foreign_reader_beside_native_ones_leaves_alone(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    assert_eq!(redisson(&mut client, READ, "doc", "uuid:1"), Value::Nil);
    let mut upgrade = by.write(&server, "doc", "alice");
    let mut reader = by.read(&server, "doc", "r");
    assert_eq!(client.waiters("doc"), 2);
    let key = lease_key("doc", "uuid:1", 1);
    client.succeed(&[
        "MULTI",
        "HINCRBY doc uuid:1 -1",
        "HDEL doc uuid:1",
        &format!("DEL {key}"),
        "EXEC",
    ]);
    upgrade.token();
    let both = "alice:write=1 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
    client.int("RLOCK.RELEASE doc alice WRITE");
    reader.token();
}

both_ways!(a_foreign_writer_that_goes_on_reading_lets_readers_in);
/// Redisson tells nobody when a writer goes on as a reader.
fn a_foreign_writer_that_goes_on_reading_lets_readers_in(by: Way) {
    let server = Server::start();
    for order in [
        ["HDEL doc uuid:1:write", "HSET doc mode read"],
        ["HSET doc mode read", "HDEL doc uuid:1:write"],
    ] {
        let mut client = server.raw();
        client.ok("FLUSHALL");
        foreign_write(&mut client, "doc", "uuid:1");
        assert_eq!(redisson(&mut client, READ, "doc", "uuid:1"), Value::Nil);
        let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
        let mut writer = by.write(&server, "doc", "w");
        client.succeed(&["MULTI", order[0], order[1], "EXEC"]);
        for reader in &mut readers {
            reader.token();
        }
        assert_eq!(client.hash("doc"), "a=1 b=1 mode=read uuid:1=1");
        assert_eq!(client.waiters("doc"), 1);
        for owner in ["a", "b", "uuid:1"] {
            client.int(&format!("RLOCK.RELEASE doc {owner} READ"));
        }
        writer.token();
    }
}

both_ways!(a_foreign_writer_that_leaves_lets_the_next_in);
fn a_foreign_writer_that_leaves_lets_the_next_in(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    foreign_write(&mut client, "doc", "uuid:1");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let replies = client.succeed(&["MULTI", "HDEL doc uuid:1:write", "DEL doc", "EXEC"]);
    assert_eq!(list(replies[3].clone())[0], Value::Int(1));
    for reader in &mut readers {
        reader.token();
    }
    client.goes_to("doc", "a read 1, b read 1");

    // Its lease is the hash's.
    client.ok("FLUSHALL");
    foreign_write(&mut client, "doc", "uuid:1");
    let mut writer = by.write(&server, "doc", "w");
    let replies = client.succeed(&["PEXPIRE doc 300", "PEXPIRETIME doc"]);
    writer.token();
    assert!(now_ms() >= int(replies[1].clone()), "not before");
}

both_ways!(a_foreign_client_that_comes_between_is_waited_for);
/// A foreign client that finds the lock free comes first, and is waited for.
fn a_foreign_client_that_comes_between_is_waited_for(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    let mut writer = by.write(&server, "doc", "w");
    client.succeed(&[
        "MULTI",
        "DEL doc",
        "HSET doc mode write uuid:1:write 1",
        "PEXPIRE doc 100000",
        "EXEC",
    ]);
    assert_eq!(client.held_by("doc"), "uuid:1 write 1");
    assert_eq!(client.waiters("doc"), 1);
    client.int("DEL doc");
    writer.token();
}

both_ways!(a_reader_whose_longer_hold_ended_stays_no_longer_than_the_other);
fn a_reader_whose_longer_hold_ended_stays_no_longer_than_the_other(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    // The server's own expiry would tell of the end, a little later.
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    client.int("RLOCK.ACQUIRE doc u 1000 READ");
    let lease = lease_key("doc", "u", 2);
    client.succeed(&[
        "MULTI",
        "HINCRBY doc u 1",
        &format!("SET {lease} 1 PX {LONG}"),
        &format!("PEXPIRE doc {LONG}"),
        "EXEC",
    ]);
    assert_eq!(client.int("RLOCK.RELEASE doc u READ"), 1);
    let mut writer = by.write(&server, "doc", "w");
    writer.token();
}

#[test]
fn a_second_writer_that_somebody_made_by_hand_keeps_readers_out() {
    let server = Server::start();
    let mut client = server.raw();
    client.int(&format!("RLOCK.ACQUIRE doc u {LONG} WRITE"));
    client.int("HSET doc x:write 1");
    client.refused(&format!("RLOCK.ACQUIRE doc y {LONG} READ"));
    assert_eq!(client.int("RLOCK.RELEASE doc u WRITE"), 0);
    assert!(client.refused(&format!("RLOCK.ACQUIRE doc y {LONG} READ")));
    assert_eq!(client.int("RLOCK.RELEASE doc x WRITE"), 0);
    client.int(&format!("RLOCK.ACQUIRE doc y {LONG} READ"));
}
