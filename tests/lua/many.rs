//! The function library: many keys at once, all or none.

use super::caller::Lua;
use crate::support::Ask;

#[test]
fn all_are_taken_or_none() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire b bob 100000");
        let before = lua.keys();
        assert!(lua.refused("macquire 3 a b c alice 100000"));
        assert!(lua.refused("macquire 3 c a b alice 100000"));
        assert_eq!(lua.keys(), before);
        lua.int("release b bob");
        lua.int("macquire 3 a b c alice 100000");
        let keys = lua.keys();
        let names: Vec<_> = keys.iter().map(|(key, ..)| key.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let ends = lua.client.deadline("a");
        assert!(keys
            .iter()
            .all(|(_, field, at)| field == "alice=1" && *at == ends));
        for key in ["a", "b", "c"] {
            assert!(lua.refused(&format!("acquire {key} bob 1000")));
        }
        assert_eq!(lua.int("mrelease 4 a b c d alice"), 3);
        lua.nothing_left();
        assert_eq!(lua.int("mrelease 3 a b c alice"), 0);
    }
}

#[test]
fn keys_that_the_owner_holds_nest() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire b alice 200000");
        let ends = lua.client.deadline("b");
        lua.int("macquire 3 a b c alice 100000");
        assert_eq!(lua.client.hash("b"), "alice=2");
        assert_eq!(lua.client.deadline("b"), ends, "never shorter");
        assert_eq!(lua.int("mrelease 3 a b c alice"), 3);
        assert_eq!(lua.client.hash("b"), "alice=1");
        lua.int("macquire 2 a b alice 300000 ONCE");
        assert_eq!(lua.client.hash("a"), "alice=1");
        assert_eq!(lua.client.hash("b"), "alice=1");
        assert!(lua.client.deadline("b") > ends, "longer");
        lua.int("macquire 2 a b alice 1 once");
        assert_eq!(lua.client.hash("a"), "alice=1");
    }
}

#[test]
fn all_are_renewed_or_none() {
    for (_server, mut lua) in Lua::both() {
        lua.int("macquire 2 a c alice 100000");
        lua.int("acquire b bob 100000");
        let before = lua.keys();
        let expected = "NOTHELD owner 'alice' does not hold 'b': its lease ended, it was \
                        released, or never acquired";
        assert_eq!(lua.error("mrenew 3 a b c alice 500000"), expected);
        assert_eq!(lua.keys(), before);
        assert_eq!(lua.int("mrenew 2 a c alice 500000"), 1);
        assert!(lua.client.int("PTTL a") > 400_000);
        assert_eq!(lua.client.deadline("a"), lua.client.deadline("c"));
        assert_eq!(lua.int("mrenew 2 a c alice 1000"), 1);
        assert!(lua.client.int("PTTL a") <= 1000);
    }
}

#[test]
fn a_key_that_is_no_lock_stops_all() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire a alice 100000");
        lua.client.ok("SET text value");
        let before = lua.keys();
        let expected = "WRONGTYPE Operation against a key holding the wrong kind of value";
        for request in [
            "macquire 3 b a text alice 100000",
            "mrelease 3 b a text alice",
            "mrelease 2 a text bob",
            "mrenew 2 a text alice 500000",
        ] {
            assert_eq!(lua.error(request), expected, "{request}");
        }
        assert_eq!(lua.keys(), before);
    }
}

#[test]
fn they_are_plain_locks() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc alice 100000 WRITE");
        assert!(lua.refused("macquire 2 a doc bob 100000"));
        let line = lua.error("macquire 2 a doc alice 100000");
        assert!(line.starts_with("WRONGMODE "), "{line}");
        assert_eq!(lua.int("mrelease 1 doc alice"), 0);
        let line = lua.error("mrenew 1 doc alice 100000");
        let expected = "NOTHELD owner 'alice' does not hold 'doc' as a plain lock, it holds it \
                        for WRITE: say WRITE";
        assert_eq!(line, expected);
        for mode in ["READ", "WRITE"] {
            let line = lua.error(&format!("macquire 1 a alice 100000 {mode}"));
            assert!(line.starts_with("ERR syntax error at "), "{line}");
        }
    }
}

#[test]
fn as_many_as_1024_keys_each_once() {
    for (_server, mut lua) in Lua::both() {
        let keys: Vec<String> = (0..1025).map(|n| format!("k{n}")).collect();
        let most = keys[..1024].join(" ");
        lua.int(&format!("macquire 1024 {most} alice 100000"));
        assert_eq!(lua.keys().len(), 1024);
        assert_eq!(lua.int(&format!("mrenew 1024 {most} alice 100000")), 1);
        assert_eq!(lua.int(&format!("mrelease 1024 {most} alice")), 1024);
        lua.nothing_left();
        let line = lua.error(&format!("mrelease 1025 {} alice", keys.join(" ")));
        let expected = "ERR numkeys must be a whole number from 1 to 1024, got '1025'";
        assert_eq!(line, expected);
        let line = lua.error("macquire 0 alice 100000");
        let expected = "ERR numkeys must be a whole number from 1 to 1024, got '0'";
        assert_eq!(line, expected);
        let twice = "ERR the key 'b' is given twice; each must be given once";
        for request in [
            "macquire 3 b a b alice 1000",
            "mrelease 2 b b alice",
            "mrenew 2 b b alice 1000",
        ] {
            assert_eq!(lua.error(request), twice);
        }
        lua.nothing_left();
    }
}

#[test]
fn one_token_for_all() {
    let server = super::caller::bare();
    let mut lua = Lua::library(&server);
    let a = lua.int("acquire a alice 100000");
    let all = lua.int("macquire 2 a b alice 100000");
    assert!(all > a);
    // The hold under way keeps its own.
    assert_eq!(lua.int("acquire a alice 100000"), a);
    assert_eq!(lua.int("acquire b alice 100000"), all);
    assert_eq!(lua.int("macquire 2 a b alice 100000"), all, "the greatest");
    assert_eq!(lua.int("macquire 1 a alice 100000"), a);
    assert_eq!(lua.info("b").holders[0].token, Some(all));
    // Holds that somebody else took get theirs together.
    for key in ["c", "d"] {
        lua.client.int(&format!("HSET {key} alice 1"));
        lua.client.int(&format!("PEXPIRE {key} 100000"));
    }
    let found = lua.int("macquire 2 c d alice 100000");
    let tokens = ["c", "d"].map(|key| lua.info(key).holders[0].token);
    assert_eq!(tokens, [Some(found), Some(found)]);
}
