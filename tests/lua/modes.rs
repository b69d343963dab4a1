//! The function library: read and write locks.

use super::caller::Lua;
use crate::support::{lease_key, Ask};

#[test]
fn many_read_or_one_writes() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 100000 READ");
        lua.int("acquire doc b 100000 read");
        assert_eq!(lua.client.hash("doc"), "a=1 b=1 mode=read");
        for owner in ["a", "c"] {
            assert!(lua.refused(&format!("acquire doc {owner} 100000 WRITE")));
        }
        assert!(lua.refused("acquire doc c 100000"));
        assert_eq!(lua.int("release doc a READ"), 0);
        assert_eq!(lua.int("release doc b READ"), 0);
        lua.nothing_left();
        lua.int("acquire doc a 100000 WRITE");
        assert_eq!(lua.client.hash("doc"), "a:write=1 mode=write");
        for mode in ["READ", "WRITE", ""] {
            assert!(lua.refused(&format!("acquire doc b 100000 {mode}")));
        }
        assert_eq!(lua.int("release doc a WRITE"), 0);
        lua.nothing_left();
    }
}

#[test]
fn each_read_hold_has_a_lease_key_of_its_own() {
    for (_server, mut lua) in Lua::both() {
        for holds in 1..=3 {
            lua.int("acquire doc a 100000 READ");
            let ends = lua.client.deadline("doc");
            let keys = lua.keys();
            assert_eq!(keys.len(), holds + 1);
            for (number, (key, value, at)) in (1..).zip(&keys[1..]) {
                assert_eq!(*key, lease_key("doc", "a", number));
                assert_eq!((value.as_str(), *at), ("doc", ends));
            }
        }
        assert_eq!(lua.int("release doc a READ"), 2);
        assert_eq!(lua.keys().len(), 3);
        let third = lease_key("doc", "a", 3);
        assert_eq!(lua.client.int(&format!("EXISTS {third}")), 0);
        assert_eq!(lua.int("release doc a READ ALL"), 0);
        lua.nothing_left();
    }
}

#[test]
fn a_writer_may_read_too_and_go_on_reading() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 100000 WRITE");
        lua.int("acquire doc a 100000 READ");
        let both = "a:write=1 a=1 mode=write";
        assert_eq!(lua.client.hash("doc"), both);
        assert!(lua.refused("acquire doc b 100000 READ"));
        assert_eq!(lua.int("release doc a WRITE"), 0);
        assert_eq!(lua.client.hash("doc"), "a=1 mode=read");
        lua.int("acquire doc b 100000 READ");
        assert_eq!(lua.int("release doc a READ"), 0);
        assert_eq!(lua.int("release doc b READ"), 0);
        lua.nothing_left();
        // It may stop reading first.
        lua.int("acquire doc a 100000 WRITE");
        lua.int("acquire doc a 100000 READ");
        assert_eq!(lua.int("release doc a READ"), 0);
        assert_eq!(lua.client.hash("doc"), "a:write=1 mode=write");
        assert_eq!(lua.int("release doc a WRITE"), 0);
        lua.nothing_left();
    }
}

#[test]
fn a_sole_reader_may_write_and_the_lock_ends_with_it() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 100000 READ");
        lua.int("acquire doc b 900000 READ");
        assert!(lua.refused("acquire doc a 100000 WRITE"));
        assert_eq!(lua.int("release doc b READ"), 0);
        lua.client.int("PEXPIRE doc 900000");
        lua.int("acquire doc a 200000 WRITE ONCE");
        let both = "a:write=1 a=1 mode=write";
        assert_eq!(lua.client.hash("doc"), both);
        let ends = lua.client.deadline("doc");
        assert_eq!(lua.client.deadline(&lease_key("doc", "a", 1)), ends);
        assert!(lua.client.int("PTTL doc") <= 200_000);
    }
}

#[test]
fn a_mode_is_said_when_it_is_released_or_renewed() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 100000 READ");
        let reads = "NOTHELD owner 'a' does not hold 'doc' as a plain lock, it holds it for \
                     READ: say READ";
        for request in ["release doc a", "release doc a ALL", "renew doc a 1000"] {
            assert_eq!(lua.error(request), reads, "{request}");
        }
        let line = lua.error("release doc a WRITE");
        let expected = "NOTHELD owner 'a' does not hold 'doc' for WRITE, it holds it for READ: \
                        say READ";
        assert_eq!(line, expected);
        lua.flush();
        lua.int("acquire doc a 100000");
        let line = lua.error("renew doc a 1000 WRITE");
        let expected = "NOTHELD owner 'a' does not hold 'doc' for WRITE, it holds it as a plain \
                        lock: leave the mode out";
        assert_eq!(line, expected);
    }
}

#[test]
fn one_name_is_one_kind_of_lock() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 100000");
        for mode in ["READ", "WRITE", "READ ONCE"] {
            let line = lua.error(&format!("acquire doc a 100000 {mode}"));
            let expected = "WRONGMODE owner 'a' holds 'doc' as a plain lock, which does not mix \
                            with READ and WRITE: release it first, or use another name";
            assert_eq!(line, expected);
            assert!(lua.refused(&format!("acquire doc b 100000 {mode}")));
        }
        for mode in ["READ", "WRITE"] {
            lua.flush();
            lua.int(&format!("acquire doc a 100000 {mode}"));
            let expected = format!(
                "WRONGMODE owner 'a' holds 'doc' for {mode}, which does not mix with a plain \
                 lock: release it first, or use another name"
            );
            assert_eq!(lua.error("acquire doc a 100000"), expected);
            assert_eq!(lua.error("macquire 2 x doc a 100000"), expected);
            assert!(lua.refused("acquire doc b 100000"));
        }
    }
}

#[test]
fn once_is_of_a_mode() {
    for (_server, mut lua) in Lua::both() {
        for again in ["READ ONCE", "READ ONCE", "ONCE WRITE", "once write"] {
            lua.int(&format!("acquire doc a 100000 {again}"));
        }
        assert_eq!(lua.client.hash("doc"), "a:write=1 a=1 mode=write");
        lua.int("release doc a READ");
        lua.int("acquire doc a 100000 once read");
        let both = "a:write=1 a=1 mode=write";
        assert_eq!(lua.client.hash("doc"), both);
    }
}

#[test]
fn force_ends_everybodys_holds() {
    for (_server, mut lua) in Lua::both() {
        assert_eq!(lua.int("force doc"), 0);
        for requests in [
            &["acquire doc a 100000", "acquire doc a 100000"][..],
            &["acquire doc a 100000 READ", "acquire doc b 100000 READ"],
            &["acquire doc a 100000 WRITE", "acquire doc a 100000 READ"],
        ] {
            for request in requests {
                lua.int(request);
            }
            assert_eq!(lua.int("force doc"), 1);
            lua.nothing_left();
        }
    }
}

#[test]
fn info_names_who_excludes_most_first() {
    for (_server, mut lua) in Lua::both() {
        for request in ["b 100000 READ", "a 200000 READ", "c 300000 READ"] {
            lua.int(&format!("acquire doc {request}"));
        }
        lua.int("acquire doc a 100000 READ");
        let info = lua.info("doc");
        assert_eq!(info.mode, "read");
        let seen = info.holders.iter();
        let seen: Vec<_> = seen.map(|hold| (hold.owner.as_str(), hold.holds)).collect();
        assert_eq!(seen, [("a", 2), ("b", 1), ("c", 1)]);
        lua.flush();
        lua.int("acquire doc a 100000 READ");
        lua.int("acquire doc a 100000 WRITE");
        let info = lua.info("doc");
        assert_eq!(info.mode, "write");
        let modes: Vec<_> = info.holders.iter().map(|hold| hold.mode.as_str()).collect();
        assert_eq!(modes, ["write", "read"]);
    }
}
