//! The function library: RELEASE IFHELD and FORCE IFOWNER. IFTOKEN needs the module.

use super::caller::Lua;
use crate::support::Ask;

#[test]
fn ifheld_replies_0_where_release_would_reply_notheld() {
    for (_server, mut lua) in Lua::both() {
        assert_eq!(lua.int("release job a IFHELD"), 0);
        lua.int("acquire job a 100000");
        lua.int("acquire job a 100000");
        let before = lua.keys();
        for words in [
            "b IFHELD",
            "b ifheld ALL",
            "a READ IFHELD",
            "a IFHELD WRITE",
        ] {
            assert_eq!(lua.int(&format!("release job {words}")), 0, "{words}");
        }
        assert_eq!(lua.keys(), before);
        assert_eq!(lua.int("release job a IFHELD"), 1);
        assert_eq!(lua.int("release job a ALL IFHELD"), 0);
        lua.nothing_left();
        lua.int("acquire doc a 100000 READ");
        assert_eq!(lua.int("release doc a IFHELD"), 0);
        assert_eq!(lua.int("release doc a WRITE IFHELD"), 0);
        assert_eq!(lua.info("doc").held_by(), "a read 1");
        assert_eq!(lua.int("release doc a READ IFHELD"), 0);
        lua.nothing_left();
        lua.client.ok("SET text 1");
        let line = lua.error("release text a IFHELD");
        assert!(line.starts_with("WRONGTYPE "), "{line}");
    }
}

#[test]
fn force_frees_the_lock_of_one_of_its_holders() {
    for (_server, mut lua) in Lua::both() {
        assert_eq!(lua.int("force job IFOWNER a"), 0);
        lua.int("acquire job a 100000");
        assert_eq!(lua.int("force job IFOWNER b"), 0);
        assert_eq!(lua.int("force job ifowner a"), 1);
        lua.nothing_left();
        for owner in ["a", "b", "c"] {
            for reader in ["a", "b", "c"] {
                lua.int(&format!("acquire doc {reader} 100000 READ"));
            }
            assert_eq!(lua.int("force doc IFOWNER d"), 0);
            assert_eq!(lua.int(&format!("force doc IFOWNER {owner}")), 1);
            lua.nothing_left();
        }
        lua.int("acquire doc a 100000 WRITE");
        assert_eq!(lua.int("force doc IFOWNER a"), 1);
        lua.nothing_left();
    }
}

#[test]
fn iftoken_is_refused() {
    for (_server, mut lua) in Lua::both() {
        let token = lua.int("acquire job a 100000");
        let before = lua.keys();
        for request in [
            format!("release job a IFTOKEN {token}"),
            format!("release job a ALL iftoken {token}"),
            format!("release free a READ IFTOKEN {token}"),
            format!("force job IFTOKEN {token}"),
            "force free iftoken".to_owned(),
        ] {
            let line = lua.error(&request);
            let begin = "ERR IFTOKEN needs the rlock module: a function does not remember";
            assert!(line.starts_with(begin), "{request}: {line}");
        }
        for (request, begin) in [
            (
                "release job a IFHELD ifheld",
                "ERR syntax error at 'ifheld': each keyword once",
            ),
            (
                "release job a IFOWNER a",
                "ERR syntax error at 'IFOWNER': each keyword once",
            ),
            ("force job a", "ERR syntax error at 'a': each keyword once"),
            (
                "force job IFOWNER a b",
                "ERR syntax error at 'b': each keyword once",
            ),
            (
                "force job IFOWNER",
                "ERR wrong number of arguments; usage: RLOCK.FORCE key [",
            ),
            ("force job IFOWNER *", "ERR owner * means a connection"),
            ("force job IFOWNER mode", "ERR the owner must not be 'mode'"),
        ] {
            let line = lua.error(request);
            assert!(line.starts_with(begin), "{request}: {line}");
        }
        assert_eq!(lua.keys(), before);
    }
}
