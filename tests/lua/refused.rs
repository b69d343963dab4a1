//! The function library: what only the module can do is refused with a text that says
//! why, never ignored.

use super::caller::Lua;
use crate::support::Ask;

const STAR: &str = "ERR owner * means a connection, and a script, a function or a module has none \
                    of its own: give an owner id";

#[test]
fn block_is_refused() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire job alice 100000");
        let before = lua.keys();
        for options in [
            "BLOCK 0",
            "block 1000 ONCE",
            "ONCE Block 5 WATCHDOG",
            "BLOCK",
            "BLOCK x",
        ] {
            for request in [
                "acquire job bob 1000",
                "acquire free bob 1000",
                "acquire job alice 1000",
                "acquire free bob 1000 READ",
                "acquire free bob 1000 LIMIT 2",
                "macquire 2 free job bob 1000",
            ] {
                let line = lua.error(&format!("{request} {options}"));
                let begin = "ERR BLOCK needs the rlock module: a function cannot wait.";
                assert!(line.starts_with(begin), "{request} {options}: {line}");
            }
        }
        assert_eq!(lua.keys(), before);
    }
}

#[test]
fn queue_and_notify_are_refused() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire job alice 100000");
        let before = lua.keys();
        for request in ["acquire free bob 1000", "macquire 2 free job bob 1000"] {
            let queue = lua.error(&format!("{request} queue 0 NOTIFY ch t"));
            let begin = "ERR QUEUE needs the rlock module: a function cannot wait.";
            assert!(queue.starts_with(begin), "{queue}");
            let notify = lua.error(&format!("{request} Notify ch t"));
            let begin = "ERR NOTIFY notifies a connection of its hold, and a script, a function";
            assert!(notify.starts_with(begin), "{notify}");
        }
        for request in ["acquire free bob 1000", "renew job alice 1000"] {
            let wanted = lua.error(&format!("{request} Wanted NOTIFY ch t"));
            let begin = "ERR WANTED notifies a connection that somebody waits for its hold, and a";
            assert!(wanted.starts_with(begin), "{wanted}");
        }
        assert_eq!(lua.keys(), before);
    }
}

#[test]
fn watchdog_is_refused() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire job alice 100000");
        let before = lua.keys();
        for request in [
            "acquire job alice 1000 WATCHDOG",
            "acquire free bob 1000 ONCE watchdog",
            "acquire free bob 1000 WRITE Watchdog BLOCK 0",
            "renew job alice 1000 WATCHDOG",
            "renew job bob 1000 READ WATCHDOG",
            "macquire 2 free other bob 1000 WATCHDOG",
        ] {
            let line = lua.error(request);
            let begin = "ERR WATCHDOG binds a hold to a connection, and a script, a function";
            assert!(line.starts_with(begin), "{request}: {line}");
        }
        assert_eq!(lua.keys(), before);
    }
}

#[test]
fn an_owner_that_means_a_connection_is_refused() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire job alice 100000");
        let before = lua.keys();
        for request in [
            "acquire free * 1000",
            "acquire job * 1000 READ ONCE",
            "release job *",
            "release free * WRITE ALL",
            "renew job * 1000",
            "macquire 2 free other * 1000",
            "mrelease 1 job *",
            "mrenew 1 job * 1000",
        ] {
            assert_eq!(lua.error(request), STAR, "{request}");
        }
        assert_eq!(lua.keys(), before);
        // Only alone it has that meaning.
        lua.int("acquire free ** 1000");
    }
}
