//! The function library: a hash with permits as it is found. Owners who have run out are in
//! nobody's way, and what is no permit makes it no lock.

use super::caller::Lua;
use super::permits::held;
use crate::support::{now_ms, pass, Ask, Listener};

const FAR: i64 = 99_999_999_999_999;

/// A hash with permits, and a lease of its own.
#[track_caller]
fn pool(lua: &mut Lua, mode: &str, owners: &[(&str, &str)]) {
    lua.flush();
    lua.client.ask(&["HSET", "gpu", "mode", mode]);
    for (owner, value) in owners {
        lua.client.ask(&["HSET", "gpu", owner, value]);
    }
    lua.client.int("PEXPIRE gpu 3600000");
}

/// `k@` a moment far from now.
fn live(permits: i64) -> String {
    format!("{permits}@{FAR}")
}

#[test]
fn who_has_run_out_stays_as_long_as_it_is_in_nobodys_way() {
    for (_server, mut lua) in Lua::both() {
        let owners = [("dead", "1@5"), ("a", &live(1))];
        pool(&mut lua, "permits 3 3 2", &owners);
        lua.int("acquire gpu b 100000 LIMIT 3");
        assert_eq!(held(&mut lua), "a=1 b=1 dead=1 permits 3 3 3");
        // Now it is.
        lua.int("acquire gpu c 100000 LIMIT 3");
        assert_eq!(held(&mut lua), "a=1 b=1 c=1 permits 3 3 3");
        assert!(lua.refused("acquire gpu d 100000 LIMIT 3"));
        // As it is when it asks itself.
        for request in ["release gpu dead PERMITS", "renew gpu dead 1000 PERMITS"] {
            pool(&mut lua, "permits 3 3 2", &owners);
            assert!(lua.error(request).starts_with("NOTHELD "), "{request}");
            assert_eq!(held(&mut lua), "a=1 permits 3 3 1");
        }
        pool(&mut lua, "permits 3 3 2", &owners);
        lua.int("acquire gpu dead 100000 LIMIT 3 ONCE PERMITS 2");
        assert_eq!(held(&mut lua), "a=1 dead=2 permits 3 3 3");
    }
}

#[test]
fn what_is_out_is_counted_anew_where_it_would_refuse() {
    for (_server, mut lua) in Lua::both() {
        pool(&mut lua, "permits 2 2 2", &[("a", &live(1))]);
        lua.int("acquire gpu b 100000 LIMIT 2");
        assert_eq!(held(&mut lua), "a=1 b=1 permits 2 2 2");
        pool(&mut lua, "permits 4 4 9", &[("a", &live(2)), ("b", "1@5")]);
        assert!(lua.refused("acquire gpu c 100000 LIMIT 4 PERMITS 3"));
        assert_eq!(held(&mut lua), "a=2 permits 4 4 2");
    }
}

#[test]
fn where_all_have_run_out_the_lock_is_free() {
    let dead = [("x", "1@5"), ("y", "1@0")];
    for (server, mut lua) in Lua::both() {
        pool(&mut lua, "permits 2 3 2", &dead);
        let before = lua.keys();
        assert_eq!(lua.info("gpu").mode, "free");
        assert_eq!(lua.keys(), before, "looking changes nothing");
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        let free = ("redisson_lock__channel:{gpu}".to_owned(), "0".to_owned());
        assert!(lua.error("limit gpu 2").starts_with("NOTHELD "));
        lua.nothing_left();
        assert_eq!(heard.messages(), std::slice::from_ref(&free));
        pool(&mut lua, "permits 2 2 2", &dead);
        assert_eq!(lua.int("force gpu"), 0);
        lua.nothing_left();
        pool(&mut lua, "permits 2 2 1", &dead[..1]);
        assert!(lua.error("release gpu x PERMITS").starts_with("NOTHELD "));
        lua.nothing_left();
        assert_eq!(heard.messages(), [free.clone(), free]);
        // Who takes it begins anew, and wakes nobody.
        for (taken, hash) in [
            ("a 1000", "a=1"),
            ("a 1000 WRITE", "a:write=1 mode=write"),
            ("a 1000 READ", "a=1 mode=read"),
        ] {
            pool(&mut lua, "permits 2 2 2", &dead);
            lua.int(&format!("acquire gpu {taken}"));
            assert_eq!(lua.client.hash("gpu"), hash);
        }
        for limit in [1, 2, 4] {
            pool(&mut lua, "permits 2 3 2", &dead);
            lua.int(&format!("acquire gpu x 1000 LIMIT {limit}"));
            assert_eq!(held(&mut lua), format!("x=1 permits {limit} {limit} 1"));
        }
        assert_eq!(heard.messages(), []);
    }
}

#[test]
fn each_lease_ends_alone() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire gpu a 200000 LIMIT 2");
        lua.int("acquire gpu b 20 LIMIT 2");
        pass(lua.client.deadline("gpu").min(now_ms() + 20));
        assert_eq!(lua.info("gpu").held_by(), "a permits 1");
        lua.int("acquire gpu c 100000 LIMIT 2");
        assert_eq!(held(&mut lua), "a=1 c=1 permits 2 2 2");
    }
}

#[test]
fn a_field_that_is_no_permit_makes_the_hash_no_lock_when_it_is_read() {
    let line = "WRONGTYPE Operation against a key holding the wrong kind of value: 'gpu' is a \
                hash, but not laid out as a lock; use another name";
    for (_server, mut lua) in Lua::both() {
        for (field, value) in [
            ("x", "3"),
            ("x", "x@1"),
            ("x", "-1@5"),
            ("x", "0@5"),
            ("x", "01@5"),
            ("x", "1@"),
            ("x", "1@-5"),
            ("x", "1@05"),
            ("x", "1@5@5"),
            ("x", " 1@5"),
            ("x", "1@5\n"),
            ("x", "1000001@99999999999999"),
            ("x", "1@9223372036854775808"),
            ("", "1@99999999999999"),
            (":write", "1@99999999999999"),
            ("x:write", "1@99999999999999"),
        ] {
            let owners = [(field, value), ("a", &live(1)), ("dead", "1@5")];
            pool(&mut lua, "permits 3 3 2", &owners);
            let before = lua.keys();
            for request in [
                "acquire gpu b 1000 LIMIT 3 PERMITS 2",
                "acquire gpu dead 1000 LIMIT 3 PERMITS 3",
                "acquire gpu b 1000 LIMIT 2",
                "acquire gpu b 1000",
                "acquire gpu b 1000 READ",
                "macquire 1 gpu b 1000",
                "limit gpu 4",
                "force gpu",
                "info gpu",
            ] {
                assert_eq!(lua.error(request), line, "{field:?} {value:?} {request}");
            }
            if field == "x" {
                for request in [
                    "acquire gpu x 1000 LIMIT 3",
                    "release gpu x PERMITS",
                    "release gpu x IFHELD",
                    "renew gpu x 1000 PERMITS",
                    "mrelease 1 gpu x",
                ] {
                    assert_eq!(lua.error(request), line, "{value:?} {request}");
                }
            }
            assert_eq!(lua.keys(), before, "{field:?} {value:?}");
            // As long as nobody reads it, it is in nobody's way.
            assert_eq!(lua.int("release gpu a PERMITS"), 0);
        }
    }
}

#[test]
fn a_mode_that_is_none_makes_the_hash_no_lock() {
    for (_server, mut lua) in Lua::both() {
        for mode in [
            "permits",
            "permits 2 2",
            "permits 2 2 1 ",
            "permits 2 2 1 1",
            "permits  2 2 1",
            "permits 0 2 1",
            "permits 2 0 1",
            "permits 2 2 -1",
            "permits 2 2 01",
            "permits 2 2 x",
            "permits 02 2 1",
            "permits 1000001 2 1",
            "permits 2 1000001 1",
            "permits 2 2 9223372036854775808",
            "PERMITS 2 2 1",
        ] {
            pool(&mut lua, mode, &[("a", &live(1))]);
            let before = lua.keys();
            for request in [
                "acquire gpu b 1000 LIMIT 2",
                "release gpu a PERMITS",
                "info gpu",
            ] {
                let line = lua.error(request);
                assert!(line.contains("not laid out as a lock"), "{mode:?}: {line}");
            }
            assert_eq!(lua.keys(), before, "{mode:?}");
        }
        // Nothing else looks like what is left of permits.
        pool(&mut lua, "permits 2 2 1", &[]);
        assert_eq!(lua.info("gpu").held_by(), "");
        for mode in [
            "permits 2 2 0",
            "permits 1000000 1000000 9223372036854775807",
        ] {
            pool(&mut lua, mode, &[("a", &live(1))]);
            assert_eq!(lua.info("gpu").held_by(), "a permits 1");
        }
    }
}

/// The owners' deadlines are in force still, but it may be somebody's data.
#[test]
fn permits_without_a_ttl_may_be_somebodys_data() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire gpu a 100000 LIMIT 2");
        lua.client.int("PERSIST gpu");
        let before = lua.keys();
        for request in [
            "acquire gpu b 1000 LIMIT 2",
            "release gpu a PERMITS",
            "info gpu",
        ] {
            let line = lua.error(request);
            assert!(line.contains("'gpu' has no TTL"), "{request}: {line}");
        }
        assert_eq!(lua.keys(), before);
        lua.client.int("HSET gpu b x");
        let line = lua.error("release gpu a PERMITS");
        assert!(line.contains("not laid out as a lock"), "{line}");
        lua.client.int("HDEL gpu b");
        lua.client.int("PEXPIRE gpu 1000");
        assert_eq!(lua.int("release gpu a PERMITS"), 0);
    }
}
