//! The function library: permits, of which no more are out than the limit says.

use super::caller::Lua;
use super::errors::Pair;
use crate::support::{lease_from, Ask, Info, Listener};

/// Who has how many permits, and what `mode` says: the hash without its deadlines.
#[track_caller]
pub fn held(lua: &mut Lua) -> String {
    let flat = lua.client.texts("HGETALL gpu");
    let all = flat
        .chunks(2)
        .map(|pair| (pair[0].as_str(), pair[1].as_str()));
    let (mode, owners): (Vec<_>, Vec<_>) = all.partition(|(name, _)| *name == "mode");
    let permits = |value: &str| value.split('@').next().unwrap_or_default().to_owned();
    let owners = owners.iter().map(|(name, value)| (name, permits(value)));
    let mut told: Vec<String> = owners
        .map(|(name, held)| format!("{name}={held}"))
        .collect();
    told.sort();
    told.extend(mode.iter().map(|(_, value)| (*value).to_owned()));
    told.join(" ")
}

#[test]
fn no_more_are_out_than_the_limit() {
    for (_server, mut lua) in Lua::both() {
        let (_, expected) = lease_from(100_000, || lua.int("acquire gpu a 100000 LIMIT 2"));
        let ends = lua.client.deadline("gpu");
        assert!(expected.contains(&ends), "{ends}, {expected:?}");
        let hash = format!("a=1@{ends} mode=permits 2 2 1");
        assert_eq!(lua.client.hash("gpu"), hash);
        lua.int("acquire gpu b 200000 limit 2");
        assert!(lua.refused("acquire gpu c 100000 LIMIT 2"));
        assert!(lua.refused("acquire gpu a 100000 LIMIT 2"), "not its own");
        assert_eq!(held(&mut lua), "a=1 b=1 permits 2 2 2");
        assert_eq!(lua.int("release gpu a PERMITS"), 0);
        lua.int("acquire gpu c 100000 LIMIT 2");
        assert_eq!(held(&mut lua), "b=1 c=1 permits 2 2 2");
        assert_eq!(lua.int("release gpu b PERMITS"), 0);
        assert_eq!(lua.int("release gpu c permits"), 0);
        lua.nothing_left();
    }
}

#[test]
fn several_are_taken_at_once_and_given_back_one_by_one() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire gpu a 100000 LIMIT 4 PERMITS 3");
        assert!(lua.refused("acquire gpu b 100000 PERMITS 2 LIMIT 4"));
        lua.int("acquire gpu a 100000 LIMIT 4");
        assert_eq!(held(&mut lua), "a=4 permits 4 4 4");
        assert_eq!(lua.int("release gpu a PERMITS"), 3);
        assert_eq!(lua.int("release gpu a PERMITS 2 IFHELD"), 1);
        assert_eq!(held(&mut lua), "a=1 permits 4 4 1");
        lua.int("acquire gpu b 100000 LIMIT 4 PERMITS 3");
        let before = lua.keys();
        assert!(lua.error("release gpu b PERMITS 4").starts_with("NOTHELD "));
        assert_eq!(lua.int("release gpu c PERMITS IFHELD"), 0);
        assert_eq!(lua.keys(), before);
        assert_eq!(lua.int("release gpu b PERMITS ALL"), 0);
        assert_eq!(lua.int("release gpu a ALL PERMITS"), 0);
        lua.nothing_left();
    }
}

#[test]
fn info_shows_who_has_how_many() {
    for (_server, mut lua) in Lua::both() {
        for (owner, permits) in [("b", 2), ("a", 1), ("c", 1)] {
            lua.int(&format!(
                "acquire gpu {owner} 100000 LIMIT 6 PERMITS {permits}"
            ));
        }
        lua.int("limit gpu 5");
        let info = lua.info("gpu");
        assert_eq!((info.mode.as_str(), info.waiters), ("permits", 0));
        assert_eq!(info.held_by(), "a permits 1, b permits 2, c permits 1");
        assert_eq!(info.holders[0].token.is_some(), !lua.is_script());
        assert!((90_000..=100_000).contains(&info.holders[0].remaining_ms.expect("a lease")));
        assert_eq!(lua.numbers("limit asked-limit available"), [5, 6, 1]);
        let some = Info::of(lua.ask("info gpu COUNT 2"));
        assert_eq!(some.held_by(), "a permits 1, b permits 2");
        lua.int("limit gpu 1");
        assert_eq!(lua.numbers("available"), [0]);
    }
}

#[test]
fn the_key_stays_for_the_longest_lease_and_is_never_shortened() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire gpu a 300000 LIMIT 3");
        let ends = lua.client.deadline("gpu");
        lua.int("acquire gpu b 100000 LIMIT 3");
        lua.int("acquire gpu a 100000 LIMIT 3");
        assert_eq!(lua.info("gpu").holders[0].holds, 2);
        assert_eq!(lua.int("renew gpu a 1000 PERMITS"), 1);
        assert!(lua.info("gpu").holders[0].remaining_ms.expect("a lease") <= 1000);
        assert_eq!(lua.int("release gpu a PERMITS ALL"), 0);
        assert_eq!(lua.client.deadline("gpu"), ends);
        let (_, expected) = lease_from(400_000, || lua.int("renew gpu b 400000 permits"));
        assert!(expected.contains(&lua.client.deadline("gpu")));
        let (_, expected) = lease_from(500_000, || {
            lua.int("acquire gpu b 500000 LIMIT 3 ONCE");
        });
        assert!(expected.contains(&lua.client.deadline("gpu")));
        assert_eq!(held(&mut lua), "b=1 permits 3 3 1");
        // Its own lease is as it was.
        let hash = lua.client.hash("gpu");
        lua.int("acquire gpu b 1000 LIMIT 3 ONCE");
        assert_eq!(lua.client.hash("gpu"), hash);
    }
}

#[test]
fn a_limit_goes_up_and_down_while_the_lock_is_held() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire gpu a 100000 LIMIT 2 PERMITS 2");
        assert_eq!(lua.int("limit gpu 3"), 2);
        assert_eq!(lua.int("limit gpu 3"), 3);
        lua.int("acquire gpu b 100000 LIMIT 2");
        assert!(lua.refused("acquire gpu c 100000 LIMIT 2"));
        assert_eq!(lua.int("limit gpu 1"), 3);
        assert_eq!(held(&mut lua), "a=2 b=1 permits 2 1 3");
        assert!(lua.refused("acquire gpu c 100000 LIMIT 2"));
        lua.int("release gpu a PERMITS ALL");
        assert!(lua.refused("acquire gpu c 100000 LIMIT 2"));
        let line = lua.error("acquire gpu c 100000 LIMIT 2 PERMITS 2");
        assert!(line.starts_with("WRONGLIMIT "), "{line}");
        lua.int("release gpu b PERMITS");
        lua.nothing_left();
        lua.int("acquire gpu c 100000 LIMIT 2 PERMITS 2");
        assert_eq!(held(&mut lua), "c=2 permits 2 2 2");
    }
}

#[test]
fn permits_do_not_mix_with_other_modes() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire gpu a 100000 LIMIT 2");
        let before = lua.keys();
        for mode in ["", "READ", "WRITE ONCE"] {
            assert!(lua.refused(&format!("acquire gpu b 1000 {mode}")));
            let line = lua.error(&format!("acquire gpu a 1000 {mode}"));
            assert!(line.starts_with("WRONGMODE "), "{line}");
        }
        assert!(lua.refused("macquire 2 free gpu b 1000"));
        assert_eq!(lua.int("mrelease 1 gpu a"), 0);
        assert_eq!(lua.keys(), before);
        lua.flush();
        for mode in ["", "READ", "WRITE"] {
            lua.int(&format!("acquire gpu a 100000 {mode}"));
            let before = lua.keys();
            assert!(lua.refused("acquire gpu b 1000 LIMIT 2"));
            for request in ["acquire gpu a 1000 LIMIT 2", "limit gpu 2"] {
                let line = lua.error(request);
                assert!(line.starts_with("WRONGMODE "), "{line}");
            }
            assert_eq!(lua.keys(), before);
            lua.flush();
        }
    }
}

#[test]
fn each_grant_has_its_token_and_once_replies_it_again() {
    for (_server, mut lua) in Lua::both() {
        let first = lua.int("acquire gpu a 100000 LIMIT 4");
        let again = lua.int("acquire gpu a 100000 LIMIT 4 ONCE");
        assert_eq!(again == first, !lua.is_script(), "a script has no memory");
        let second = lua.int("acquire gpu a 100000 LIMIT 4 PERMITS 2");
        assert!(second > again, "{first} {again} {second}");
        assert_eq!(held(&mut lua), "a=3 permits 4 4 3");
        let line = lua.error("acquire gpu a 100000 LIMIT 4 PERMITS 2 ONCE");
        assert!(line.starts_with("HELD "), "{line}");
        let again = lua.int("acquire gpu a 100000 LIMIT 4 PERMITS 3 ONCE");
        assert_eq!(again == second, !lua.is_script());
        lua.int("release gpu a PERMITS 2");
        lua.int("renew gpu a 200000 PERMITS");
        let again = lua.int("acquire gpu a 100000 LIMIT 4 ONCE");
        assert_eq!(again == second, !lua.is_script());
        let other = lua.int("acquire gpu b 100000 LIMIT 4");
        assert!(other > again);
        lua.int("release gpu a PERMITS");
        assert!(lua.int("acquire gpu a 100000 LIMIT 4 ONCE") > other);
    }
}

#[test]
fn waiters_are_woken_when_the_last_permit_is_back() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire gpu a 100000 LIMIT 3 PERMITS 2");
        lua.int("acquire gpu b 100000 LIMIT 3");
        lua.int("release gpu a PERMITS");
        lua.int("release gpu a PERMITS");
        assert_eq!(heard.messages(), []);
        lua.int("release gpu b PERMITS");
        let free = ("redisson_lock__channel:{gpu}".to_owned(), "0".to_owned());
        assert_eq!(heard.messages(), std::slice::from_ref(&free));
        lua.int("acquire gpu a 100000 LIMIT 3");
        assert_eq!(lua.int("force gpu IFOWNER b"), 0);
        assert_eq!(lua.int("force gpu IFOWNER a"), 1);
        lua.nothing_left();
        assert_eq!(heard.messages(), [free]);
    }
}

#[test]
fn what_is_refused_of_permits_has_the_same_error() {
    for mut pair in Pair::all() {
        pair.both("acquire gpu alice 3600000 LIMIT 3 PERMITS 2");
        pair.both("acquire low alice 3600000 LIMIT 3");
        pair.both("limit low 2");
        for line in [
            "acquire gpu bob 1000 LIMIT 2",
            "acquire gpu alice 1000 LIMIT 4 ONCE",
            "acquire gpu alice 1000 LIMIT 3 ONCE",
            "acquire low bob 1000 LIMIT 3 PERMITS 3",
            "acquire gpu alice 1000",
            "acquire gpu alice 1000 READ",
            "acquire gpu alice 1000 WRITE",
            "acquire job alice 1000 LIMIT 2",
            "acquire doc alice 1000 LIMIT 2",
            "acquire text alice 1000 LIMIT 2",
            "macquire 1 gpu alice 1000",
            "release gpu alice",
            "release gpu alice READ",
            "release gpu alice WRITE ALL",
            "release gpu bob PERMITS",
            "release gpu alice PERMITS 3",
            "release gpu alice PERMITS 3 IFHELD",
            "release gpu alice PERMITS 1 ALL",
            "release job alice PERMITS",
            "release doc alice PERMITS",
            "release none alice PERMITS",
            "renew gpu alice 1000",
            "renew gpu bob 1000 PERMITS",
            "renew job alice 1000 PERMITS",
            "mrenew 1 gpu alice 1000",
            "limit job 2",
            "limit doc 2",
            "limit text 2",
            "limit none 2",
        ] {
            pair.agree(line);
        }
        // And so is what no request says.
        for number in [
            "",
            "0",
            "-1",
            "01",
            "1.5",
            "x",
            "1000001",
            "READ",
            "9223372036854775808",
        ] {
            for words in [
                &["acquire", "gpu", "bob", "1000", "LIMIT", number][..],
                &[
                    "acquire", "gpu", "bob", "1000", "LIMIT", "3", "PERMITS", number,
                ],
                &["release", "gpu", "bob", "PERMITS", number],
                &["limit", "gpu", number],
                &["info", "gpu", "COUNT", number],
            ] {
                if number != "1000001" || words[0] != "info" {
                    pair.agree(words);
                }
            }
        }
        for line in [
            "acquire gpu bob 1000 LIMIT",
            "acquire gpu bob 1000 LIMIT 3 PERMITS",
            "acquire gpu bob 1000 LIMIT 3 PERMITS 4",
            "acquire gpu bob 1000 PERMITS 4",
            "acquire gpu bob 1000 READ PERMITS 1",
        ] {
            pair.agree(line);
        }
    }
}
