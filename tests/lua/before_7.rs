//! The script on Redis before 7.0, which cannot be asked what a user may do.

use redis::Value;

use super::caller::Lua;
use crate::support::{error, user, Ask, Server};

const LOCKS: [&str; 7] = [
    "acquire plain a 100000",
    "acquire doc a 100000 READ",
    "acquire doc b 200000 READ",
    "acquire page a 100000 WRITE",
    "acquire page a 100000 READ",
    "acquire gpu a 100000 LIMIT 3",
    "acquire gpu b 100000 LIMIT 3",
];

const REQUESTS: [&str; 16] = [
    "acquire free a 100000",
    "acquire free a 100000 READ",
    "acquire free a 100000 WRITE",
    "acquire free a 100000 LIMIT 2",
    "acquire plain a 500000",
    "acquire plain w 500000 PLACE w 2000",
    "acquire doc a 500000 READ",
    "acquire doc c 500000 READ",
    "acquire gpu c 500000 LIMIT 3",
    "release plain a",
    "release doc a READ",
    "release page a WRITE",
    "release gpu a PERMITS",
    "renew page a 500000 WRITE",
    "force doc",
    "macquire 2 free other a 1000",
];

/// Each key with what is in it, and its TTL in tens of seconds.
#[track_caller]
fn all(admin: &mut Lua) -> Vec<(String, Value, i64)> {
    let mut keys = admin.client.texts("KEYS *");
    keys.sort();
    let mut read = |key: String| {
        let value = admin.client.ask(&["DUMP", &key]);
        let ttl = admin.client.int(&["PTTL", &key]);
        (key, value, (ttl + 5000).div_euclid(10_000))
    };
    keys.into_iter().map(&mut read).collect()
}

#[track_caller]
fn some_locks(admin: &mut Lua) -> Vec<(String, Value, i64)> {
    admin.flush();
    for request in LOCKS {
        admin.int(request);
    }
    all(admin)
}

#[test]
fn who_lacks_a_right_leaves_nothing_half_written() {
    let Some(server) = Server::start_redis_6() else {
        return;
    };
    let mut admin = Lua::script(&server);
    for rules in [
        "~* &* +@all -set",
        "~* &* +@all -hset",
        "~* &* +@all -hincrby",
        "~* &* +@all -hdel",
        "~* &* +@all -pexpireat",
        "~* &* +@all -incrby",
        "~* &* +@all -del",
        "~* &* +@all -zadd",
        "~* &* +@all -setrange",
        "~* &* +@all -publish",
        "~* +@all resetchannels &other",
        "~plain ~doc ~page ~gpu ~free &* +@all",
    ] {
        let mut lua = admin.on(user(&server, rules));
        let mut refused = 0;
        for request in REQUESTS {
            let before = some_locks(&mut admin);
            let reply = lua.ask(request);
            if matches!(reply, Value::ServerError(_)) {
                let line = error(reply);
                assert_eq!(all(&mut admin), before, "{rules}: {request}: {line}");
                refused += 1;
            }
        }
        assert!(refused > 0, "{rules}");
    }
}

/// The server stops a script for want of memory at its first write alone: what tries the user's
/// rights must not be that write.
#[test]
fn who_has_the_rights_is_not_in_the_way_of_full_memory() {
    let Some(server) = Server::start_redis_6() else {
        return;
    };
    let mut lua = Lua::script(&server);
    lua.int("acquire job a 100000");
    lua.client.ok("CONFIG SET maxmemory 1");
    for request in ["acquire other a 1000", "acquire doc a 1000 READ"] {
        let line = lua.error(request);
        assert!(line.contains("OOM"), "{line}");
    }
    lua.int("renew job a 200000");
    lua.int("release job a");
    lua.client.ok("CONFIG SET maxmemory 0");
    let left = all(&mut lua);
    assert!(left
        .iter()
        .all(|(key, ..)| key.starts_with("redisson_lock_token:")));
}
