//! The function library on a server whose memory is full: nothing is acquired, and
//! nothing that is held is kept from being released or renewed.

use super::caller::Lua;
use crate::support::Ask;

/// The least there is.
const FULL: &str = "CONFIG SET maxmemory 1";

fn take_all(lua: &mut Lua) {
    for request in [
        "acquire job alice 100000",
        "acquire job alice 100000",
        "acquire doc alice 100000 READ",
        "acquire doc alice 100000 READ",
        "acquire doc bob 100000 READ",
        "acquire page alice 100000 WRITE",
        "acquire page alice 100000 READ",
        "macquire 2 m n alice 100000",
        "acquire gpu alice 100000 LIMIT 3 PERMITS 2",
    ] {
        lua.int(request);
    }
}

#[test]
fn acquiring_is_refused_before_anything_is_written() {
    for (_server, mut lua) in Lua::both() {
        take_all(&mut lua);
        // A lock that is free, with remains that would be removed first.
        lua.client.int("HSET old mode read dead 1");
        lua.client.int("PEXPIRE old 100000");
        lua.client.ok("SET redisson_lock_token:{free} 1");
        let before = lua.client.everything();
        lua.client.ok(FULL);
        for request in [
            "acquire free bob 1000",
            "acquire free bob 1000 READ",
            "acquire free bob 1000 WRITE ONCE",
            "acquire old bob 1000",
            "acquire old bob 1000 READ",
            "acquire job alice 200000",
            "acquire doc alice 200000 READ",
            "acquire doc carol 200000 READ",
            "acquire page alice 200000 WRITE",
            "macquire 2 free m alice 200000",
            "acquire free bob 1000 LIMIT 2",
            "acquire gpu bob 1000 LIMIT 3",
            "limit gpu 2",
        ] {
            let line = lua.error(request);
            assert!(line.starts_with("OOM "), "{request}: {line}");
        }
        let after = lua.client.everything();
        assert_eq!(after, before);
    }
}

#[test]
fn what_is_held_can_be_renewed_released_and_forced() {
    for (_server, mut lua) in Lua::both() {
        take_all(&mut lua);
        lua.client.ok(FULL);
        for (request, reply) in [
            ("renew job alice 200000", 1),
            ("renew doc alice 200000 READ", 1),
            ("renew page alice 200000 WRITE", 1),
            ("mrenew 2 m n alice 200000", 1),
            ("renew gpu alice 200000 PERMITS", 1),
            ("release gpu alice PERMITS", 1),
            ("release job alice", 1),
            ("release doc alice READ", 1),
            ("release page alice WRITE", 0),
        ] {
            assert_eq!(lua.int(request), reply, "{request}");
        }
        assert_eq!(lua.client.hash("job"), "alice=1");
        assert_eq!(lua.client.hash("page"), "alice=1 mode=read");
        assert_eq!(lua.info("doc").mode, "read");
        for (request, reply) in [
            ("release job alice", 0),
            ("release doc alice READ ALL", 0),
            ("release doc bob READ", 0),
            ("release gpu alice PERMITS ALL", 0),
            ("force page", 1),
            ("mrelease 2 m n alice", 2),
        ] {
            assert_eq!(lua.int(request), reply, "{request}");
        }
        lua.nothing_left();
        assert_eq!(lua.info("job").mode, "free");
    }
}
