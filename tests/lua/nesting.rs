//! The function library: one owner holds a lock, several times if it wants.

use redis::Value;

use super::caller::Lua;
use crate::support::{bulk, lease_from, list, map, Ask};

#[test]
fn a_lock_has_one_owner_at_a_time() {
    for (_server, mut lua) in Lua::both() {
        let first = lua.int("acquire job alice 100000");
        assert_eq!(lua.client.hash("job"), "alice=1");
        assert!(lua.refused("acquire job bob 100000"));
        assert!(lua.error("release job bob").starts_with("NOTHELD "));
        assert_eq!(lua.int("release job alice"), 0);
        lua.nothing_left();
        assert!(lua.int("acquire job bob 100000") > first);
        assert!(lua.error("release job alice").starts_with("NOTHELD "));
        assert_eq!(lua.int("release job bob"), 0);
        lua.nothing_left();
    }
}

#[test]
fn holds_nest_and_release_counts_down() {
    for (_server, mut lua) in Lua::both() {
        for _ in 0..3 {
            lua.int("acquire job alice 100000");
        }
        assert_eq!(lua.client.hash("job"), "alice=3");
        assert_eq!(lua.int("release job alice"), 2);
        assert_eq!(lua.int("release job alice"), 1);
        assert!(lua.refused("acquire job bob 100000"));
        assert_eq!(lua.int("release job alice"), 0);
        lua.nothing_left();
        for _ in 0..3 {
            lua.int("acquire job alice 100000");
        }
        assert_eq!(lua.int("release job alice all"), 0);
        lua.nothing_left();
    }
}

#[test]
fn once_gives_the_hold_under_way() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire job alice 100000 ONCE");
        let ends = lua.client.deadline("job");
        lua.int("acquire job alice 50000 once");
        assert_eq!(lua.client.deadline("job"), ends, "never shorter");
        lua.int("acquire job alice 200000 ONCE");
        assert!(lua.client.deadline("job") > ends + 50_000);
        assert_eq!(lua.client.hash("job"), "alice=1");
        assert!(lua.refused("acquire job bob 100000 ONCE"));
        lua.int("acquire job alice 100000");
        assert_eq!(lua.client.hash("job"), "alice=2");
    }
}

#[test]
fn an_owner_and_a_key_are_any_bytes() {
    let all: Vec<u8> = (0..=255).collect();
    let longest = [0xff; 512];
    let names: [&[u8]; 8] = [
        b"\0",
        b"job\0more",
        b"\r\n",
        b" ",
        b"{",
        b"a{b}c",
        &all,
        &longest,
    ];
    for (_server, mut lua) in Lua::both() {
        for name in names {
            for mode in [&b"READ"[..], b"WRITE", b""] {
                let modes = if mode.is_empty() { vec![] } else { vec![mode] };
                let call = |lua: &mut Lua, words: &[&[u8]]| lua.ask(&[words, &modes].concat());
                let taken = call(&mut lua, &[b"acquire", name, name, b"100000"]);
                assert!(matches!(taken, Value::Int(_)), "{name:?}: {taken:?}");
                let field = match mode {
                    b"WRITE" => [name, b":write"].concat(),
                    _ => name.to_vec(),
                };
                let found = lua.client.ask(&[b"HGET", name, field.as_slice()]);
                assert_eq!(found, bulk("1"), "{name:?}");
                let renewed = call(&mut lua, &[b"renew", name, name, b"100000"]);
                assert_eq!(renewed, Value::Int(1), "{name:?}");
                let released = call(&mut lua, &[b"release", name, name]);
                assert_eq!(released, Value::Int(0), "{name:?}");
            }
        }
        // The script's counters have binary names.
        let left = if lua.is_script() { names.len() } else { 0 };
        assert_eq!(lua.client.int("DBSIZE"), left as i64);
    }
}

#[test]
fn info_shows_a_plain_lock() {
    for (_server, mut lua) in Lua::both() {
        let info = lua.map("info job");
        assert_eq!(info["mode"], bulk("free"));
        assert_eq!(info["holders"], Value::Array(vec![]));
        assert_eq!(info["waiters"], Value::Int(0));
        assert_eq!(info["oldest-wait-ms"], Value::Nil);
        assert_eq!(info.len(), 4);
        let token = lua.int("acquire job alice 100000");
        lua.int("acquire job alice 100000");
        let ends = lua.client.deadline("job");
        let (info, now) = lease_from(0, || lua.map("info job"));
        let mut holders = list(info["holders"].clone());
        assert_eq!(holders.len(), 1);
        let holder = map(holders.remove(0));
        assert_eq!(holder["owner"], bulk("alice"));
        assert_eq!(holder["mode"], bulk("exclusive"));
        assert_eq!(holder["holds"], Value::Int(2));
        assert_eq!(holder["watchdog"], Value::Nil);
        assert_eq!(holder["wanted-ms"], Value::Nil);
        assert_eq!(holder.len(), 8);
        let Value::Int(left) = holder["remaining-ms"] else {
            panic!("{holder:?}");
        };
        assert!(
            now.contains(&(ends - left)),
            "{left} left of {ends}, {now:?}"
        );
        // A script knows of no hold when it was taken.
        if lua.is_script() {
            assert_eq!(holder["token"], Value::Nil);
            assert_eq!(holder["held-ms"], Value::Nil);
        } else {
            assert!(matches!(holder["held-ms"], Value::Int(ms) if ms >= 0));
            assert_eq!(holder["token"], Value::Int(token));
        }
    }
}

#[test]
fn a_client_that_speaks_resp3_gets_a_map_and_a_null() {
    for (_server, mut lua) in Lua::both() {
        lua.client.ask("HELLO 3");
        lua.int("acquire job alice 100000");
        assert!(lua.refused("acquire job bob 1000"));
        let info = lua.ask("info job");
        let Value::Map(fields) = info else {
            panic!("no map: {info:?}");
        };
        assert_eq!(fields.len(), 4);
        for (name, value) in fields {
            if name == bulk("holders") {
                let Value::Array(holders) = value else {
                    panic!("no list: {value:?}");
                };
                assert!(matches!(holders[0], Value::Map(_)), "{holders:?}");
            }
        }
    }
}
