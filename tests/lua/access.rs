//! The function library and ACLs: what the README says is enough, and with less a call is
//! refused before it wrote anything.

use redis::Value;

use super::caller::{bare, lua_dir, Lua};
use crate::support::{error, user, Ask};

/// The rules that the README gives.
fn rules() -> String {
    let readme = std::fs::read_to_string(lua_dir().join("README.md")).expect("README.md");
    let line = readme
        .lines()
        .find(|line| line.starts_with("ACL SETUSER worker "))
        .expect("the rules");
    let (_, rules) = line.split_once(">secret ").expect("a password");
    rules.to_owned()
}

#[track_caller]
fn a_day(lua: &mut Lua, prefix: &str) {
    let key = format!("{prefix}job");
    for mode in ["", "READ", "WRITE"] {
        for request in [
            "acquire KEY a 100000",
            "acquire KEY a 200000",
            "renew KEY a 300000",
        ] {
            lua.int(&format!("{} {mode}", request.replace("KEY", &key)));
        }
        lua.int(&format!("release {key} a {mode}"));
        lua.int(&format!("release {key} a {mode} ALL"));
    }
    lua.int(&format!("macquire 1 {key} a 100000"));
    lua.int(&format!("mrenew 1 {key} a 100000"));
    lua.int(&format!("mrelease 1 {key} a"));
    lua.int(&format!("acquire {key} a 1000 READ"));
    lua.int(&format!("force {key}"));
    for owner in ["a", "b"] {
        lua.int(&format!("acquire {key} {owner} 100000 LIMIT 3"));
    }
    lua.int(&format!("renew {key} a 200000 PERMITS"));
    lua.int(&format!("limit {key} 2"));
    lua.refused(&format!("acquire {key} c 100000 LIMIT 3"));
    for owner in ["a", "b"] {
        lua.int(&format!("release {key} {owner} PERMITS"));
    }
    lua.info(&key);
}

#[test]
fn the_rules_of_the_readme_are_enough() {
    for (server, mut lua) in Lua::both() {
        lua.client.ok("SET redisson_lock_token:{lock:job} 1");
        let mut lua = lua.on(user(&server, &rules()));
        a_day(&mut lua, "lock:");
        // And no more than that.
        let line = lua.error("acquire other a 1000");
        assert!(
            line.starts_with("NOPERM ") || line.contains("can't access"),
            "{line}"
        );
    }
}

#[test]
fn with_one_command_less_nothing_is_written() {
    let server = bare();
    let mut admin = Lua::library(&server);
    for command in [
        "HSET",
        "HINCRBY",
        "HDEL",
        "PEXPIREAT",
        "SET",
        "DEL",
        "PUBLISH",
    ] {
        let mut lua = admin.on(user(&server, &format!("~* &* +@all -{command}")));
        let mut refused = 0;
        for request in [
            "acquire free a 100000",
            "acquire free a 100000 READ",
            "acquire plain a 500000",
            "acquire doc a 500000 READ",
            "acquire doc c 500000 READ",
            "release doc a READ",
            "release page a WRITE",
            "release last a",
            "force doc",
            "renew page a 500000 WRITE",
        ] {
            let before = some_locks(&mut admin);
            let reply = lua.ask(request);
            if matches!(reply, Value::ServerError(_)) {
                let line = error(reply);
                let begin = format!("NOPERM this user may not run {command} on ");
                assert!(line.starts_with(&begin), "{request}: {line}");
                assert_eq!(admin.keys(), before, "-{command} {request}");
                refused += 1;
            }
        }
        assert!(refused > 0, "{command} is needed nowhere");
    }
}

/// What cannot be read is not taken for gone.
#[test]
fn a_reader_whose_lease_cannot_be_read_is_not_taken_for_dead() {
    let server = bare();
    let mut admin = Lua::library(&server);
    for rules in [
        "~* &* +@all -STRLEN",
        "~* &* +@all -PEXPIRETIME",
        "~* &* +@all -TYPE",
        "~* &* +@all -HGETALL",
        "~doc ~page &* +@all",
    ] {
        let before = some_locks(&mut admin);
        let mut lua = admin.on(user(&server, rules));
        for request in [
            "acquire doc w 1000 WRITE",
            "acquire page w 1000",
            "release doc a READ",
            "force doc",
            "info doc",
        ] {
            let reply = lua.ask(request);
            assert!(
                matches!(reply, Value::ServerError(_)),
                "{rules}, {request}: {reply:?}"
            );
            assert_eq!(admin.keys(), before, "{rules}, {request}");
        }
    }
}

/// Not even what would be done whatever was asked, for another key.
#[test]
fn what_cannot_be_read_stops_all() {
    let server = bare();
    let mut admin = Lua::library(&server);
    admin.client.int("HSET doc mode read dead 1");
    admin.client.int("PEXPIRE doc 100000");
    admin.int("acquire page a 100000 READ");
    let before = admin.keys();
    let mut lua = admin.on(user(&server, "~doc ~page ~{doc}* &* +@all"));
    for request in ["macquire 2 doc page b 1000", "mrelease 2 doc page a"] {
        let reply = lua.ask(request);
        assert!(
            matches!(reply, Value::ServerError(_)),
            "{request}: {reply:?}"
        );
        assert_eq!(admin.keys(), before, "{request}");
    }
}

#[track_caller]
fn some_locks(admin: &mut Lua) -> Vec<(String, String, i64)> {
    admin.flush();
    for request in [
        "acquire plain a 100000",
        "acquire plain a 100000",
        "acquire doc a 100000 READ",
        "acquire doc b 200000 READ",
        "acquire page a 100000 WRITE",
        "acquire page a 100000 READ",
        "acquire last a 100000",
    ] {
        admin.int(request);
    }
    admin.keys()
}
