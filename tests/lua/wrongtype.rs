//! The function library: a key that is no lock is WRONGTYPE, in the module's own words,
//! and stays as it is.

use super::caller::Lua;
use crate::support::Ask;

const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn requests(key: &str) -> Vec<String> {
    [
        "acquire KEY a 1000",
        "acquire KEY a 1000 READ",
        "acquire KEY a 1000 WRITE ONCE",
        "release KEY a",
        "release KEY a READ ALL",
        "release KEY a IFHELD",
        "renew KEY a 1000",
        "acquire KEY a 1000 LIMIT 2",
        "release KEY a PERMITS",
        "renew KEY a 1000 PERMITS",
        "limit KEY 2",
        "macquire 1 KEY a 1000",
        "mrelease 1 KEY a",
        "mrenew 1 KEY a 1000",
        "force KEY",
        "force KEY IFOWNER a",
        "info KEY",
    ]
    .map(|request| request.replace("KEY", key))
    .to_vec()
}

#[track_caller]
fn refuses_all(lua: &mut Lua, key: &str, line: &str) {
    for ttl in [false, true] {
        if ttl {
            assert_eq!(lua.client.int(&format!("PEXPIRE {key} 3600000")), 1);
        }
        let (before, changes) = (lua.client.state(key.as_bytes()), lua.client.changes());
        for request in requests(key) {
            assert_eq!(lua.error(&request), line, "{request}");
        }
        assert_eq!(lua.client.state(key.as_bytes()), before, "{key}");
        assert_eq!(lua.client.changes(), changes, "{key}");
    }
}

#[test]
fn other_types_are_no_locks() {
    for (_server, mut lua) in Lua::both() {
        lua.client.ok("SET string 1");
        lua.client.int("RPUSH list a 1");
        lua.client.int("SADD set a");
        lua.client.int("ZADD zset 1 a");
        lua.client.text("XADD stream * a 1");
        for key in ["string", "list", "set", "zset", "stream"] {
            refuses_all(&mut lua, key, WRONGTYPE);
        }
    }
}

#[test]
fn hashes_of_another_layout_are_no_locks() {
    for (_server, mut lua) in Lua::both() {
        let many: Vec<String> = (0..600).map(|n| format!("{n} 1")).collect();
        for fields in [
            "a 1 b 1",
            &many.join(" "),
            "a x",
            "a 0",
            "a -1",
            "a +1",
            "a 01",
            "a 1.5",
            "a 1e3",
            "a 0x1",
            "a 9223372036854775808",
            "mode read",
            "mode shared a 1",
            "mode READ a 1",
            "mode read a x",
            "mode read a 1 b 0",
            "mode write a:write 0x",
            "mode write :write 1",
            "mode write a:write:write 1",
        ] {
            lua.flush();
            lua.client.int(&format!("HSET key {fields}"));
            let line = format!(
                "{WRONGTYPE}: 'key' is a hash, but not laid out as a lock; use another name"
            );
            refuses_all(&mut lua, "key", &line);
        }
    }
}

/// The module knows a lock that somebody has PERSISTed; the library does not.
#[test]
fn a_hash_without_a_ttl_may_be_somebodys_data() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire job a 100000");
        lua.int("acquire doc a 100000 READ");
        lua.client.succeed(&["PERSIST job", "PERSIST doc"]);
        lua.client.int("HSET cart:2 a 3");
        lua.client.int("HSET two mode read a 1 b 2");
        lua.client.int("HSET page mode write a:write 1");
        for key in ["job", "doc", "cart:2", "two", "page"] {
            let line = format!(
                "{WRONGTYPE}: '{key}' has no TTL, it may be somebody's data; PEXPIRE it if it is \
                 a lock, DEL it if nobody needs it, or use another name"
            );
            let (before, changes) = (lua.keys(), lua.client.changes());
            for request in requests(key) {
                assert_eq!(lua.error(&request), line, "{request}");
            }
            assert_eq!(lua.keys(), before);
            assert_eq!(lua.client.changes(), changes);
        }
        assert_eq!(lua.client.int("PEXPIRE job 100000"), 1);
        assert_eq!(lua.int("release job a"), 0);
    }
}

#[test]
fn what_belongs_to_a_lock_may_be_anything_too() {
    for (_server, mut lua) in Lua::both() {
        let others = ["redisson_lock_queue:{job}", "redisson_lock_timeout:{job}"];
        for put in ["SET KEY 1", "HSET KEY a 1", "SADD KEY a"] {
            for key in others {
                lua.client.ask(&put.replace("KEY", key));
            }
            lua.int("acquire job a 100000");
            assert_eq!(lua.int("release job a"), 0);
            lua.flush();
        }
        for put in ["HSET KEY a 1", "RPUSH KEY 1"] {
            lua.client
                .ask(&put.replace("KEY", "redisson_lock_token:{job}"));
            let line = lua.error("acquire job a 100000");
            assert!(line.starts_with(WRONGTYPE), "{line}");
            lua.nothing_left();
            lua.flush();
        }
    }
}
