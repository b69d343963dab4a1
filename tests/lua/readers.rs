//! The function library: a reader whose lease keys are gone holds nothing, though its
//! field is in the hash.

use super::caller::Lua;
use crate::support::{lease_key, Ask};

/// A hash in which `dead` left its field; and a reader `live`, if wanted.
#[track_caller]
fn leftover(lua: &mut Lua, live: bool) {
    lua.flush();
    lua.client.int("HSET doc mode read dead 2");
    if live {
        lua.client.int("HSET doc live 1");
        let key = lease_key("doc", "live", 1);
        lua.client.ok(&format!("SET {key} 1 PX 100000"));
    }
    lua.client.int("PEXPIRE doc 100000");
}

#[test]
fn a_lock_of_dead_readers_is_free() {
    for (_server, mut lua) in Lua::both() {
        leftover(&mut lua, false);
        let before = lua.keys();
        assert_eq!(lua.info("doc").mode, "free");
        assert_eq!(lua.info("doc").holders.len(), 0);
        assert_eq!(lua.keys(), before, "looking changes nothing");
        for request in [
            "release doc dead READ",
            "renew doc dead 9 READ",
            "mrenew 1 doc dead 9",
        ] {
            leftover(&mut lua, false);
            assert!(lua.error(request).starts_with("NOTHELD "), "{request}");
            lua.nothing_left();
        }
        for request in ["force doc", "mrelease 1 doc dead"] {
            leftover(&mut lua, false);
            assert_eq!(lua.int(request), 0);
            lua.nothing_left();
        }
        for (taken, expected) in [
            ("a 100000 WRITE", "a:write=1 mode=write"),
            ("a 100000 READ", "a=1 mode=read"),
            ("a 100000", "a=1"),
            ("dead 100000 READ ONCE", "dead=1 mode=read"),
            ("dead 100000 WRITE", "dead:write=1 mode=write"),
            ("dead 100000", "dead=1"),
        ] {
            leftover(&mut lua, false);
            lua.int(&format!("acquire doc {taken}"));
            assert_eq!(lua.client.hash("doc"), expected, "{taken}");
        }
    }
}

#[test]
fn a_dead_readers_field_goes_whatever_was_asked() {
    for (_server, mut lua) in Lua::both() {
        for request in [
            "acquire doc a 100000 WRITE",
            "acquire doc a 100000",
            "renew doc a 100000 READ",
            "release doc a READ",
            "release doc dead READ",
            "mrelease 1 doc live",
        ] {
            leftover(&mut lua, true);
            lua.ask(request);
            assert_eq!(lua.client.hash("doc"), "live=1 mode=read", "{request}");
        }
        leftover(&mut lua, true);
        lua.int("acquire doc live 100000 WRITE");
        let both = "live:write=1 live=1 mode=write";
        assert_eq!(lua.client.hash("doc"), both);
        leftover(&mut lua, true);
        assert_eq!(lua.int("release doc live READ"), 0);
        lua.nothing_left();
    }
}

#[test]
fn a_reader_is_in_while_any_of_its_lease_keys_is_there() {
    for (_server, mut lua) in Lua::both() {
        for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
            lua.flush();
            for _ in 0..3 {
                lua.int("acquire doc a 100000 READ");
            }
            for number in &order[..2] {
                lua.client
                    .int(&format!("DEL {}", lease_key("doc", "a", *number)));
                assert!(lua.refused("acquire doc b 100000 WRITE"));
            }
            lua.client
                .int(&format!("DEL {}", lease_key("doc", "a", order[2])));
            lua.int("acquire doc b 100000 WRITE");
            assert_eq!(lua.client.hash("doc"), "b:write=1 mode=write");
        }
    }
}

/// Of a count that somebody has written not all lease keys are looked at.
#[test]
fn a_count_of_any_size_is_looked_at_in_time() {
    for (_server, mut lua) in Lua::both() {
        for holds in ["1000000000", "9007199254740993", "9223372036854775807"] {
            lua.flush();
            lua.client.int(&format!("HSET doc mode read a {holds} b 1"));
            lua.client.int("PEXPIRE doc 100000");
            lua.client
                .ok(&format!("SET {} 1", lease_key("doc", "b", 1)));
            assert!(lua.refused("acquire doc w 1000 WRITE"));
            assert_eq!(lua.client.hash("doc"), "b=1 mode=read");
            lua.client.int(&format!("HSET doc a {holds}"));
            lua.client
                .ok(&format!("SET {} 1", lease_key("doc", "a", 1)));
            assert!(lua.info("doc").holders[0].holds > 0);
            let line = lua.error("acquire doc a 1000 READ");
            assert!(
                line.starts_with("ERR owner 'a' cannot nest any deeper"),
                "{line}"
            );
            assert_eq!(lua.int("release doc a READ ALL"), 0);
        }
    }
}

#[test]
fn an_owner_nests_so_many_reads_and_no_more() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 100000 READ");
        // One by one it would take seconds: each hold renews those before it.
        assert_eq!(lua.client.int("HSET doc a 1023"), 0);
        lua.int("acquire doc a 100000 READ");
        let keys = lua.keys();
        let expected = "ERR owner 'a' cannot nest any deeper on 'doc': release a hold first";
        assert_eq!(lua.error("acquire doc a 200000 READ"), expected);
        assert_eq!(lua.keys(), keys);
        assert_eq!(lua.int("release doc a READ ALL"), 0);
        lua.nothing_left();
    }
}

#[test]
fn the_lease_key_of_another_lock_is_not_taken() {
    for (_server, mut lua) in Lua::both() {
        assert_eq!(lease_key("{x}a", "b:c", 1), lease_key("{x}a:b", "c", 1));
        lua.int("acquire {x}a b:c 100000 READ");
        let before = lua.keys();
        let expected = "WRONGTYPE Operation against a key holding the wrong kind of value: the \
                        lease key that owner 'c' needs to read '{x}a:b' belongs to something \
                        else; use another name or owner";
        assert_eq!(lua.error("acquire {x}a:b c 100000 READ"), expected);
        assert_eq!(lua.keys(), before);
        lua.int("acquire {x}a:b c 100000 WRITE");
        assert_eq!(lua.error("acquire {x}a:b c 100000 READ"), expected);
        lua.flush();
        // What is no lease key is not overwritten, nor deleted.
        for put in ["SET KEY data", "RPUSH KEY doc", "HSET KEY doc 1"] {
            lua.int("acquire doc a 100000 READ");
            let key = lease_key("doc", "a", 2);
            lua.client.ask(&put.replace("KEY", &key));
            let line = lua.error("acquire doc a 100000 READ");
            assert!(line.starts_with("WRONGTYPE "), "{line}");
            lua.client.int("HSET doc a 2");
            assert_eq!(lua.int("release doc a READ ALL"), 0);
            assert_eq!(lua.client.int(&format!("EXISTS {key}")), 1);
            lua.flush();
        }
    }
}

/// Redisson's RReadWriteLock does not see a plain lock, and takes its key. The library
/// remembers who holds it; a script cannot.
#[test]
fn a_plain_lock_that_was_taken_over_is_held_until_its_lease_ends() {
    let server = super::caller::bare();
    let mut lua = Lua::library(&server);
    lua.int("acquire doc plain 100000");
    lua.client.int("HSET doc mode write uuid:1:write 1");
    lua.client.int("PEXPIRE doc 200000");
    for mode in ["", "READ", "WRITE"] {
        assert!(lua.refused(&format!("acquire doc a 1000 {mode}")), "{mode}");
    }
    lua.client.int("HDEL doc uuid:1:write");
    lua.client.int("HSET doc mode read");
    for mode in ["", "READ", "WRITE"] {
        assert!(lua.refused(&format!("acquire doc a 1000 {mode}")), "{mode}");
    }
    assert_eq!(lua.info("doc").mode, "exclusive");
    let line = lua.error("acquire doc plain 1000 READ");
    assert!(line.starts_with("WRONGMODE "), "{line}");
    lua.int("acquire doc plain 1000");
    assert_eq!(lua.int("renew doc plain 100000"), 1);
    assert_eq!(lua.int("release doc plain"), 1);
    assert_eq!(lua.int("release doc plain"), 0);
    lua.nothing_left();
    // A plain lock that was seen to be over is not mistaken for it.
    lua.int("acquire doc dead 100000");
    lua.client.int("DEL doc");
    assert_eq!(lua.info("doc").mode, "free");
    leftover(&mut lua, false);
    lua.int("acquire doc a 1000 WRITE");
}

/// A client that knows nothing of rlock can leave it so.
#[test]
fn a_reader_joins_where_the_writer_went_without_a_word() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 100000 READ");
        lua.client.int("HSET doc mode write");
        lua.int("acquire doc b 100000 READ");
        assert_eq!(lua.client.hash("doc"), "a=1 b=1 mode=read");
    }
}

#[test]
fn what_is_no_lease_key_keeps_nobody_in() {
    for (_server, mut lua) in Lua::both() {
        for put in ["SET KEY longer", "RPUSH KEY doc", "HSET KEY doc 1"] {
            lua.int("acquire doc a 100000 READ");
            let key = lease_key("doc", "a", 1);
            lua.client.int(&format!("DEL {key}"));
            lua.client.ask(&put.replace("KEY", &key));
            assert_eq!(lua.info("doc").mode, "free", "{put}");
            lua.int("acquire doc w 100000 WRITE");
            lua.flush();
        }
    }
}

/// Redisson gives each hold of a reader a lease of its own.
#[test]
fn a_nested_hold_that_ends_leaves_the_lease_of_those_that_are_left() {
    for (_server, mut lua) in Lua::both() {
        let [first, second] = [1, 2].map(|index| lease_key("doc", "a", index));
        let nest = |lua: &mut Lua| {
            lua.flush();
            lua.int("acquire doc a 100000 READ");
            lua.client.int("HINCRBY doc a 1");
            lua.client.ok(&format!("SET {second} 1 PX 300000"));
            lua.client.int("PEXPIRE doc 300000");
        };
        nest(&mut lua);
        assert_eq!(lua.int("release doc a READ"), 1);
        assert_eq!(lua.client.deadline("doc"), lua.client.deadline(&first));
        // None is left.
        nest(&mut lua);
        lua.client.int(&format!("DEL {first}"));
        assert_eq!(lua.int("release doc a READ"), 1);
        lua.nothing_left();
    }
}

#[test]
fn a_plain_hold_that_was_taken_over_may_be_the_writers_own() {
    let server = super::caller::bare();
    let mut lua = Lua::library(&server);
    let holders = |lua: &mut Lua| lua.info("doc").holders.len();
    lua.int("acquire doc a 100000");
    lua.client.int("HSET doc mode write a:write 1 b:write 1");
    lua.client.int("PEXPIRE doc 200000");
    assert_eq!(lua.int("renew doc a 150000"), 1);
    assert_eq!(holders(&mut lua), 3);
    // Whoever writes may read, whatever else is there.
    lua.int("acquire doc b 1000 READ");
    lua.flush();
    // And whoever came to read has no plain hold any more.
    lua.int("acquire doc a 100000");
    lua.client.int("HSET doc mode read");
    let key = lease_key("doc", "a", 1);
    lua.client.ok(&format!("SET {key} 1 PX 100000"));
    assert_eq!(lua.info("doc").mode, "read");
    lua.client.int(&format!("DEL {key}"));
    assert_eq!(holders(&mut lua), 0);
}
