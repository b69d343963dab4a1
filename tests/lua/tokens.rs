//! The function library: tokens rise, a hold keeps its own, and a counter is kept where
//! there is one.

use redis::Value;

use super::caller::{bare, Lua};
use crate::support::{now_us, text, Ask};

const COUNTER: &str = "redisson_lock_token:{job}";

#[test]
fn tokens_rise_and_are_microseconds() {
    for (_server, mut lua) in Lua::both() {
        let before = now_us();
        let mut last = before - 1;
        for round in 0..100 {
            let key = ["job", "doc", "other"][round % 3];
            let mode = ["", "READ", "WRITE"][round % 3];
            let token = lua.int(&format!("acquire {key} a{round} 100000 {mode}"));
            // The script's tokens rise on each key.
            if !lua.is_script() || round % 3 == 0 {
                assert!(token > last, "{round}: {token} after {last}");
                last = token;
            }
            assert!((before..=now_us()).contains(&token), "{token}");
            lua.int(&format!("release {key} a{round} {mode}"));
        }
    }
}

#[test]
fn a_nested_hold_has_the_token_of_the_first() {
    let server = bare();
    let mut lua = Lua::library(&server);
    for mode in ["", "READ", "WRITE"] {
        let take = format!("acquire doc a 100000 {mode}");
        let token = lua.int(&take);
        assert_eq!(lua.int(&take), token, "{mode}");
        assert_eq!(lua.int(&format!("renew doc a 200000 {mode}")), 1);
        assert_eq!(lua.int(&take), token, "after a renewal, {mode}");
        assert_eq!(lua.int(&format!("acquire doc a 900000 {mode}")), token);
        assert_eq!(lua.int(&format!("release doc a {mode}")), 3);
        assert_eq!(lua.int(&take), token, "after a release, {mode}");
        // Also beside others.
        if mode == "READ" {
            let other = lua.int("acquire doc b 950000 READ");
            assert!(other > token);
            assert_eq!(lua.int(&take), token);
            lua.int("release doc b READ");
            assert_eq!(lua.int(&take), token);
        }
        assert_eq!(lua.int(&format!("release doc a {mode} ALL")), 0);
        assert!(lua.int(&take) > token, "{mode}");
        lua.int(&format!("release doc a {mode}"));
    }
}

#[test]
fn a_hold_can_have_a_new_one_and_what_nests_has_that() {
    for (_server, mut lua) in Lua::both() {
        for (mode, named) in [
            ("", ""),
            ("READ", "READ"),
            ("WRITE", "WRITE"),
            ("LIMIT 2", "PERMITS"),
        ] {
            let take = format!("acquire job a 100000 {mode}");
            let renew = format!("renew job a 200000 {named} TOKEN");
            let mut last = lua.int(&take);
            for _ in 0..3 {
                let token = lua.int(&renew);
                assert!(token > last, "{mode}: {token} after {last}");
                last = token;
            }
            if !lua.is_script() {
                assert_eq!(lua.int(&format!("{take} ONCE")), last, "{mode}");
            }
            lua.int(&take);
            let error = lua.error(&renew);
            assert!(error.starts_with("HELD owner 'a' holds 'job'"), "{error}");
            lua.int("force job");
            let next = lua.int(&take);
            assert!(next > last, "{mode}: {next} after {last}");
            lua.int("force job");
        }
        lua.client.ok(&format!("SET {COUNTER} 9000000000000000"));
        let token = lua.int("acquire job a 100000");
        assert_eq!(lua.int("renew job a 100000 TOKEN"), token + 1);
        let counter = lua.client.text(&format!("GET {COUNTER}"));
        assert_eq!(counter, (token + 1).to_string());
    }
}

#[test]
fn once_gives_the_token_of_the_hold_under_way() {
    let server = bare();
    let mut lua = Lua::library(&server);
    for mode in ["", "READ", "WRITE"] {
        let once = |lua: &mut Lua, ms: i64| lua.int(&format!("acquire doc a {ms} ONCE {mode}"));
        let token = once(&mut lua, 100_000);
        assert_eq!(once(&mut lua, 1), token, "{mode}");
        assert_eq!(once(&mut lua, 200_000), token, "{mode}");
        assert_eq!(once(&mut lua, 200_000), token, "{mode}");
        lua.int("force doc");
    }
    let token = lua.int("macquire 2 doc other a 100000 ONCE");
    assert_eq!(lua.int("macquire 2 other doc a 200000 ONCE"), token);
    // Of a hold that somebody else gave none is known: it gets one, and keeps it.
    lua.client.int("HSET theirs a 1");
    lua.client.int("PEXPIRE theirs 100000");
    let given = lua.int("acquire theirs a 50000 ONCE");
    assert!(given > token);
    assert_eq!(lua.int("acquire theirs a 50000 ONCE"), given);
    assert_eq!(lua.client.hash("theirs"), "a=1");
}

#[test]
fn reading_under_ones_own_write_keeps_the_token_and_an_upgrade_begins_one() {
    let server = bare();
    let mut lua = Lua::library(&server);
    let token = lua.int("acquire doc a 100000 WRITE");
    for ms in [50_000, 300_000] {
        assert_eq!(lua.int(&format!("acquire doc a {ms} READ")), token);
    }
    assert_eq!(lua.int("acquire doc a 100000 WRITE"), token);
    lua.int("release doc a WRITE ALL");
    assert_eq!(lua.int("acquire doc a 100000 READ"), token, "it reads on");
    let upgraded = lua.int("acquire doc a 100000 WRITE");
    assert!(upgraded > token);
    assert_eq!(lua.int("acquire doc a 400000 READ"), upgraded);
    lua.int("release doc a READ ALL");
    assert_eq!(lua.int("acquire doc a 100000 WRITE"), upgraded);
}

/// A different token says that the lock was lost in between.
#[test]
fn a_hold_that_is_not_the_librarys_gets_a_new_token() {
    let server = bare();
    let mut lua = Lua::library(&server);
    let first = lua.int("acquire job a 100000");
    lua.client.int("DEL job");
    lua.client.int("HSET job a 1");
    lua.client.int("PEXPIRE job 77000");
    let second = lua.int("acquire job a 100000");
    assert!(second > first);
    assert_eq!(lua.int("acquire job a 100000"), second);
    // In another database the same name is another lock.
    lua.client.ok("SELECT 1");
    let other = lua.int("acquire job a 60000");
    assert!(other > second);
    lua.client.ok("SELECT 0");
    assert_ne!(lua.int("acquire job a 100000"), other);
}

#[test]
fn what_is_remembered_is_bounded() {
    let server = bare();
    let mut lua = Lua::library(&server);
    let words = |n: usize| -> Vec<Vec<u8>> {
        let line = format!("FCALL rlock1_acquire 1 k{n} a 100000");
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    let mut take = |from: usize, to: usize| -> Vec<Value> {
        let requests: Vec<Vec<Vec<u8>>> = (from..to).map(words).collect();
        let requests: Vec<&[Vec<u8>]> = requests.iter().map(Vec::as_slice).collect();
        lua.client.send_all(&requests);
        lua.client.read_many(to - from)
    };
    let first = take(0, 1);
    assert_eq!(take(0, 1), first);
    for from in (1..40_000).step_by(1000) {
        take(from, from + 1000);
    }
    assert_eq!(take(39_000, 39_001), take(39_000, 39_001));
    assert_ne!(take(0, 1), first, "it was forgotten");
    let memory = server.info_field("memory", "used_memory_vm_functions");
    let memory: u64 = memory.expect("a field").parse().expect("a number");
    assert!(memory < 20_000_000, "{memory}");
}

#[test]
fn a_counter_that_is_there_is_kept() {
    for (_server, mut lua) in Lua::both() {
        for begin in [1_i64, 4_000_000_000_000_000] {
            lua.client.ok(&format!("SET {COUNTER} {begin} PX 100000"));
            let ends = lua.client.deadline(COUNTER);
            let token = lua.int("acquire job a 100000");
            if begin == 1 {
                assert!(token > 1_600_000_000_000_000);
            } else {
                assert_eq!(token, begin + 1);
            }
            assert_eq!(
                lua.client.text(&format!("GET {COUNTER}")),
                token.to_string()
            );
            // A script keeps a counter for all locks, so it gives each of them a long one.
            let kept = lua.client.deadline(COUNTER);
            assert!(kept == ends || lua.is_script() && kept > ends, "{kept}");
            if !lua.is_script() {
                assert_eq!(lua.int("acquire job a 100000"), token);
            }
            lua.int("release job a ALL");
            // It rises by one where Redisson takes the lock.
            let counted = lua.client.int(&format!("INCR {COUNTER}"));
            for mode in ["READ", "WRITE"] {
                let token = lua.int(&format!("acquire job b 100000 {mode}"));
                assert!(token > counted, "{token} after {counted}");
                assert_eq!(
                    lua.client.text(&format!("GET {COUNTER}")),
                    token.to_string()
                );
            }
            lua.int("force job");
            let last = lua.int("acquire job c 100000");
            assert!(lua.refused("acquire job d 100000"));
            assert_eq!(lua.client.text(&format!("GET {COUNTER}")), last.to_string());
            lua.flush();
        }
    }
}

#[test]
fn a_library_makes_no_counter_and_a_script_does() {
    for (_server, mut lua) in Lua::both() {
        let token = lua.int("acquire job a 100000");
        let counter = lua.client.ask(&format!("GET {COUNTER}"));
        if lua.is_script() {
            assert_eq!(text(counter), token.to_string());
            // The next is greater, whatever the clock says.
            lua.int("release job a");
            let ahead = token + 4_000_000_000_000;
            lua.client.ok(&format!("SET {COUNTER} {ahead}"));
            assert_eq!(lua.int("acquire job b 100000"), ahead + 1);
            assert_eq!(lua.int("acquire job b 100000"), ahead + 2, "it cannot know");
        } else {
            assert_eq!(counter, Value::Nil);
        }
    }
}

#[test]
fn the_token_of_many_keys_is_above_each_of_their_counters() {
    for (_server, mut lua) in Lua::both() {
        lua.client
            .ok("SET redisson_lock_token:{a} 4000000000000000");
        lua.client
            .ok("SET redisson_lock_token:{b} 5000000000000000");
        let token = lua.int("macquire 3 a b c alice 100000");
        assert_eq!(token, 5_000_000_000_000_001);
        for key in ["a", "b"] {
            let counter = lua
                .client
                .text(&format!("GET redisson_lock_token:{{{key}}}"));
            assert_eq!(counter, token.to_string(), "{key}");
        }
    }
}

#[test]
fn a_counter_that_is_none_is_refused_and_left() {
    for (_server, mut lua) in Lua::both() {
        for value in [
            "x",
            "01",
            "1.5",
            "1e3",
            "0x1",
            "9007199254740991",
            "9223372036854775807",
        ] {
            lua.client.ok(&format!("SET {COUNTER} {value}"));
            for request in ["acquire job a 1000", "macquire 2 other job a 1000"] {
                let line = lua.error(request);
                assert!(line.starts_with("WRONGTYPE "), "{value}: {line}");
                assert!(line.contains("of 'job', its fencing counter"), "{line}");
            }
            assert_eq!(lua.client.text(&format!("GET {COUNTER}")), value);
            lua.nothing_left();
        }
    }
}

#[test]
fn of_several_keys_that_are_all_held_none_nests_if_a_counter_is_refused() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire a alice 100000");
        // Somebody else's own, so that no token of it is known.
        lua.client.int("HSET b alice 1");
        lua.client.int("PEXPIRE b 100000");
        lua.client.ok("SET redisson_lock_token:{b} x");
        let before = lua.keys();
        let line = lua.error("macquire 2 a b alice 100000");
        assert!(line.starts_with("WRONGTYPE "), "{line}");
        assert_eq!(lua.keys(), before);
    }
}

/// A name with a hash tag is used as it is.
#[test]
fn a_counter_is_named_as_redisson_names_it() {
    let server = bare();
    let mut lua = Lua::library(&server);
    for (key, counter) in [
        ("{acct}:7", "redisson_lock_token:{acct}:7"),
        ("job:{7}", "redisson_lock_token:job:{7}"),
        ("a}", "redisson_lock_token:{a}}"),
    ] {
        lua.client.ok(&format!("SET {counter} 5000000000000000"));
        let token = lua.int(&format!("acquire {key} a 1000"));
        assert!(token > 5_000_000_000_000_000);
        assert_eq!(
            lua.client.text(&format!("GET {counter}")),
            token.to_string()
        );
    }
}

/// As the module does it: a counter lifts the tokens of its own lock, those rise on when it is lost,
/// and at its end there are none.
#[test]
fn a_counter_that_is_ahead_lifts_its_own_lock_alone() {
    const MOST: i64 = (1 << 53) - 1;
    for (_server, mut lua) in Lua::both() {
        lua.client.ok(&format!("SET {COUNTER} {}", MOST - 3));
        assert_eq!(lua.int("acquire job a 100000"), MOST - 2);
        let before = now_us();
        let other = lua.int("acquire other a 100000");
        assert!((before..=now_us()).contains(&other), "{other}");
        lua.client.int("DEL job");
        let is_library = !lua.is_script();
        if is_library {
            // A script has no memory beside the counter.
            lua.client.int(&format!("DEL {COUNTER}"));
        }
        assert_eq!(lua.int("acquire job b 100000"), MOST - 1);
        lua.client.int("DEL job");
        assert_eq!(lua.int("acquire job c 100000"), MOST);
        lua.client.int("DEL job");
        lua.client.ok(&format!("SET {COUNTER} {MOST}"));
        let line = lua.error("acquire job d 100000");
        assert!(line.contains("has reached 9007199254740991"), "{line}");
        lua.client.int(&format!("DEL {COUNTER}"));
        assert!(lua.int("acquire job d 100000") <= now_us());
    }
}
