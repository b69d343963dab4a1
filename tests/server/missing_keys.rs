//! Keys that are not there, or not any more, where a lock, its lease keys and its counter
//! would be: no server minds being asked for them.

use redis::Value;

use crate::support::{eventually, now_ms, pass, Ask, RawClient, Server};

/// Every command, in every mode.
const REQUESTS: [&str; 17] = [
    "RLOCK.INFO k",
    "RLOCK.WAITERS k",
    "RLOCK.RELEASE k o",
    "RLOCK.RELEASE k o READ",
    "RLOCK.RELEASE k o WRITE ALL",
    "RLOCK.RENEW k o 60000",
    "RLOCK.RENEW k o 60000 READ",
    "RLOCK.FORCE k",
    "RLOCK.MRENEW 2 k other o 60000",
    "RLOCK.MRELEASE 2 k other o",
    "RLOCK.ACQUIRE k o 60000",
    "RLOCK.ACQUIRE k o 60000 READ",
    "RLOCK.ACQUIRE k o 60000 WRITE BLOCK 1",
    "RLOCK.MACQUIRE 2 k other o 60000",
    "RLOCK.MACQUIRE 2 k other o 60000 BLOCK 1",
    "RLOCK.ACQUIRE k o 60000 WATCHDOG",
    "RLOCK.ACQUIRE k o 60000 READ WATCHDOG BLOCK 1",
];

/// What can be in the way of a lock and its lease key and counter, before it runs out.
const BEFORE: [(&str, &str, &str); 5] = [
    (
        "HSET k o 1",
        "SET {k}:o:rwlock_timeout:1 k",
        "SET redisson_lock_token:{k} 1",
    ),
    (
        "HSET k mode read o 1",
        "SET {k}:o:rwlock_timeout:1 1",
        "SET redisson_lock_token:{k} x",
    ),
    (
        "HSET k mode write o:write 1",
        "RPUSH {k}:o:rwlock_timeout:1 k",
        "HSET redisson_lock_token:{k} o 1",
    ),
    (
        "SET k 1",
        "SET {k}:o:rwlock_timeout:1 2",
        "RPUSH redisson_lock_token:{k} 1",
    ),
    (
        "XADD k * o 1",
        "HSET {k}:o:rwlock_timeout:1 o 1",
        "SET redisson_lock_token:{k} 1",
    ),
];

fn with_settings(client: &mut RawClient, mut round: impl FnMut(&mut RawClient)) {
    client.ok("CONFIG SET rlock.watchdog-lost keep");
    for fencing in ["clock", "counter"] {
        client.ok(&format!("CONFIG SET rlock.fencing {fencing}"));
        round(client);
    }
}

#[test]
fn no_command_minds_that_nothing_is_there() {
    let server = Server::start();
    let mut client = server.raw();
    with_settings(&mut client, |client| {
        for request in REQUESTS {
            client.ask("FLUSHALL");
            client.ask(request);
            client.ask(&format!(
                "EVAL return(redis.pcall('{}')) 0",
                request.replace(' ', "','")
            ));
        }
    });
    server.alive();
}

/// With the server's own expiry switched off they lie there still.
#[test]
fn nor_that_what_was_there_has_run_out() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    with_settings(&mut client, |client| {
        for request in REQUESTS {
            for (lock, lease, counter) in BEFORE {
                client.ask("FLUSHALL");
                for line in [lock, lease, counter] {
                    client.ask(line);
                    client.ask(&format!(
                        "PEXPIRE {} 1",
                        line.split(' ').nth(1).expect("a key")
                    ));
                }
                pass(now_ms() + 3);
                client.ask(request);
            }
        }
    });
    server.alive();
}

/// Redis 7.4 and Valkey 9 let fields run out. The hash counts them until they are removed.
#[test]
fn a_hash_whose_fields_have_run_out_is_a_free_lock() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    for mode in ["", "READ", "WRITE"] {
        for owner in ["a", "b"] {
            client.ask("DEL k");
            client.int("HSET k a 1");
            let expire = client.ask("HPEXPIRE k 1 FIELDS 1 a");
            if matches!(expire, Value::ServerError(_)) {
                return;
            }
            eventually("it has run out", || client.texts("HKEYS k").is_empty());
            client.int(&format!("RLOCK.ACQUIRE k {owner} 60000 {mode}"));
            assert!(client.refused("RLOCK.ACQUIRE k c 60000"), "{mode} {owner}");
            let released = client.int(&format!("RLOCK.RELEASE k {owner} {mode}"));
            assert_eq!(released, 0, "{mode} {owner}");
            assert_eq!(client.int("EXISTS k"), 0, "{mode} {owner}");
        }
    }
}
