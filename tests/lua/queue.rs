//! The function library: places in the queue of a lock, so that nobody who waits for long
//! is skipped for ever.

use super::caller::{bare, Lua};
use crate::support::{eventually, int, list, Ask, Listener, Server};

/// The reply to a try that was refused: ms until it is worth trying again, and how many
/// places are before it.
#[track_caller]
fn refused(lua: &mut Lua, request: &str) -> (i64, i64) {
    let mut reply = list(lua.ask(request)).into_iter().map(int);
    match (reply.next(), reply.next(), reply.next()) {
        (Some(left), Some(ahead), None) => (left, ahead),
        other => panic!("{request}: {other:?}"),
    }
}

#[track_caller]
fn ahead(lua: &mut Lua, request: &str) -> i64 {
    refused(lua, request).1
}

fn place(key: &str, name: &str) -> (String, String) {
    let channel = format!("redisson_lock__channel:{{{key}}}:{name}");
    (channel, "0".to_owned())
}

fn free(key: &str) -> (String, String) {
    (format!("redisson_lock__channel:{{{key}}}"), "0".to_owned())
}

fn shared(key: &str, text: &str) -> (String, String) {
    (format!("redisson_rwlock:{{{key}}}"), text.to_owned())
}

#[test]
fn only_the_head_gets_what_is_free() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire job a 100000");
        let (left, at) = refused(&mut lua, "acquire job b 1000 PLACE pb 0");
        assert!((1..=100_001).contains(&left), "{left}");
        assert_eq!(at, -1, "with 0 ms it has no place");
        assert_eq!(ahead(&mut lua, "acquire job b 1000 PLACE pb 60000"), 0);
        assert_eq!(ahead(&mut lua, "acquire job c 1000 PLACE pc 60000"), 1);
        assert_eq!(ahead(&mut lua, "acquire job b 1000 PLACE pb 60000"), 0);
        assert_eq!(heard.messages(), []);
        lua.int("release job a");
        assert_eq!(heard.messages(), [free("job"), place("job", "pb")]);
        // It is free, and it is not their turn.
        assert!(lua.refused("acquire job d 1000"));
        let (left, at) = refused(&mut lua, "acquire job d 1000 PLACE pd 0");
        assert_eq!((left, at), (-1, -3), "two have places");
        assert_eq!(ahead(&mut lua, "acquire job c 1000 PLACE pc 60000"), 1);
        lua.int("acquire job b 100000 PLACE pb 60000");
        lua.int("acquire job b 100000");
        assert_eq!(ahead(&mut lua, "acquire job c 1000 PLACE pc 60000"), 0);
        lua.int("release job b ALL");
        lua.int("acquire job c 100000 PLACE pc 60000");
        lua.int("release job c");
        lua.nothing_left();
    }
}

#[test]
fn who_gives_up_lets_the_next_one_try() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire job a 100000");
        for name in ["b", "c", "d"] {
            ahead(
                &mut lua,
                &format!("acquire job {name} 1000 PLACE {name} 60000"),
            );
        }
        assert_eq!(lua.int("cancel job c PLACE c"), 1);
        assert_eq!(heard.messages(), [], "it was not the head");
        assert_eq!(lua.int("cancel job c PLACE c"), 0);
        assert_eq!(lua.int("cancel job c"), 0);
        assert_eq!(lua.int("cancel job b PLACE b"), 1);
        assert_eq!(heard.messages(), [place("job", "d")]);
        assert_eq!(ahead(&mut lua, "acquire job d 1000 PLACE d 0"), -1);
        assert_eq!(ahead(&mut lua, "acquire job d 1000 PLACE e 60000"), 0);
        assert_eq!(lua.int("cancel job d PLACE e"), 1);
        lua.int("release job a");
        assert_eq!(heard.messages(), [free("job")]);
        lua.nothing_left();
    }
}

/// Who has died keeps nobody out for longer than its place is kept.
#[test]
fn a_place_ends() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire job a 100000");
        ahead(&mut lua, "acquire job b 1000 PLACE b 300");
        ahead(&mut lua, "acquire job c 1000 PLACE c 60000");
        lua.int("release job a");
        heard.messages();
        // Whoever comes then lets the next one know.
        eventually("a place that has ended goes", || {
            let reply = list(lua.ask("acquire job d 1000 PLACE d 0"));
            assert_eq!(reply.len(), 2);
            heard.messages() == [place("job", "c")]
        });
        lua.int("acquire job c 1000 PLACE c 60000");
        assert_eq!(
            lua.client
                .int("EXISTS rlock1_queue:{job} rlock1_places:{job}"),
            0
        );
    }
}

#[test]
fn readers_let_each_other_in_and_a_writer_has_its_turn() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire doc w 100000 WRITE");
        for (owner, mode) in [("a", "READ"), ("b", "READ"), ("x", "WRITE"), ("c", "READ")] {
            let request = format!("acquire doc {owner} 100000 {mode} PLACE {owner} 60000");
            ahead(&mut lua, &request);
        }
        lua.int("release doc w WRITE");
        assert_eq!(heard.messages(), [shared("doc", "1"), place("doc", "a")]);
        lua.int("acquire doc a 100000 READ PLACE a 60000");
        assert_eq!(heard.messages(), [place("doc", "b")]);
        lua.int("acquire doc b 100000 READ PLACE b 60000");
        assert_eq!(heard.messages(), [place("doc", "x")]);
        assert_eq!(
            ahead(&mut lua, "acquire doc c 100000 READ PLACE c 60000"),
            1
        );
        assert!(lua.refused("acquire doc d 1000 READ"), "a writer waits");
        lua.int("acquire doc a 100000 READ");
        assert_eq!(ahead(&mut lua, "acquire doc x 1000 WRITE PLACE x 60000"), 0);
        lua.int("release doc a READ ALL");
        lua.int("release doc b READ");
        assert_eq!(heard.messages(), [shared("doc", "0"), place("doc", "x")]);
        lua.int("acquire doc x 100000 WRITE PLACE x 60000");
        lua.int("release doc x WRITE");
        lua.int("acquire doc c 100000 READ PLACE c 60000");
    }
}

#[test]
fn permits_that_come_back_wake_the_head() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire gpu a 100000 LIMIT 3 PERMITS 2");
        lua.int("acquire gpu b 50000 LIMIT 3");
        let (left, at) = refused(&mut lua, "acquire gpu c 1000 LIMIT 3 PLACE c 60000");
        assert!(
            (1..=50_001).contains(&left),
            "the first that can end: {left}"
        );
        assert_eq!(at, 0);
        ahead(&mut lua, "acquire gpu d 1000 LIMIT 3 PLACE d 60000");
        lua.int("release gpu a PERMITS 1");
        assert_eq!(heard.messages(), [place("gpu", "c")]);
        assert!(lua.refused("acquire gpu e 1000 LIMIT 3"));
        lua.int("acquire gpu c 100000 LIMIT 3 PLACE c 60000");
        assert_eq!(heard.messages(), [place("gpu", "d")]);
        lua.int("release gpu a PERMITS");
        assert_eq!(heard.messages(), [place("gpu", "d")]);
        lua.int("limit gpu 2");
        assert_eq!(heard.messages(), []);
        lua.int("limit gpu 4");
        assert_eq!(heard.messages(), [place("gpu", "d")]);
    }
}

/// Several keys take no place: one that waits for the second would keep others from the first.
#[test]
fn several_keys_have_no_place() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire a x 50000");
        lua.int("acquire b x 90000");
        let (left, at) = refused(&mut lua, "macquire 3 a b c y 1000 PLACE p 60000");
        assert!((50_002..=90_001).contains(&left), "all are needed: {left}");
        assert_eq!(at, -1);
        assert_eq!(
            lua.client.int("EXISTS rlock1_queue:{a} rlock1_queue:{b}"),
            0
        );
    }
}

#[test]
fn a_place_is_asked_for_in_these_words() {
    let server = bare();
    let mut lua = Lua::library(&server);
    let long = "p".repeat(101);
    for (place, says) in [
        ("PLACE".to_owned(), "PLACE needs a name"),
        ("PLACE p".to_owned(), "PLACE needs a number of ms"),
        (
            "PLACE p -1".to_owned(),
            "a place can be kept for 0 to 3600000 ms, got '-1'",
        ),
        (
            "PLACE p 3600001".to_owned(),
            "a place can be kept for 0 to 3600000 ms",
        ),
        ("PLACE p 1 PLACE p 1".to_owned(), "syntax error at 'PLACE'"),
        (
            format!("PLACE {long} 1"),
            "must be 1 to 100 bytes long, got 101",
        ),
    ] {
        let line = lua.error(&format!("acquire job a 1000 {place}"));
        assert!(line.contains(says), "{place}: {line}");
    }
    lua.nothing_left();
}

/// What lies under the names of a queue is left alone, and locks work without one.
#[test]
fn a_queue_that_is_none_does_no_harm() {
    for (_server, mut lua) in Lua::both() {
        for name in ["rlock1_queue:{job}", "rlock1_places:{job}"] {
            lua.client.ok(&["SET", name, "mine"]);
            lua.int("acquire job a 100000");
            assert_eq!(ahead(&mut lua, "acquire job b 1000 PLACE p 60000"), -1);
            lua.int("release job a");
            assert_eq!(lua.client.text(&["GET", name]), "mine");
            lua.flush();
        }
    }
}

#[test]
fn a_queue_that_is_spoilt_ends_nothing_half_done() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire job a 100000");
        ahead(&mut lua, "acquire job b 1000 PLACE b 60000");
        lua.client.ok("SET rlock1_places:{job} mine");
        lua.int("release job a");
        assert_eq!(heard.messages(), [free("job")]);
        lua.int("acquire job c 100000");
        assert_eq!(lua.int("cancel job b PLACE b"), 0);
        lua.int("release job c");
    }
}

/// However many have died, one call takes few of them away.
#[test]
fn many_dead_places_go_little_by_little() {
    let server = bare();
    let mut lua = Lua::library(&server);
    lua.int("acquire job a 100000");
    for at in 0..200 {
        lua.client
            .int(&format!("ZADD rlock1_queue:{{job}} {at} dead{at}"));
        lua.client
            .int(&format!("ZADD rlock1_places:{{job}} 1 dead{at}"));
    }
    lua.int("release job a");
    assert_eq!(lua.client.int("ZCARD rlock1_queue:{job}"), 200 - 64);
    lua.int("acquire job a 100000");
    lua.int("release job a");
    lua.int("acquire job a 100000");
    assert_eq!(
        lua.client
            .int("EXISTS rlock1_queue:{job} rlock1_places:{job}"),
        0
    );
}

#[test]
fn what_belongs_to_a_lock_is_none() {
    for (_server, mut lua) in Lua::both() {
        for name in ["rlock1_queue:{a}", "rlock1_places:{a}"] {
            let line = lua.error(&format!("acquire {name} o 1000"));
            assert!(
                line.contains("is a name of what belongs to a lock"),
                "{line}"
            );
        }
        lua.int("acquire rlock1_other:{a} o 1000");
        lua.int("macquire 2 a rlock1_more:{a} o 1000");
        assert_eq!(lua.client.int("EXISTS rlock1_more:{a}"), 1);
    }
}

/// Some servers let a script touch no other keys than those that were declared.
#[test]
fn keys_can_be_declared_behind_the_locks() {
    for (_server, mut lua) in Lua::both() {
        let declared = ["job", "rlock1_places:{job}", "redisson_lock_token:{job}"];
        let owner = ["alice", "100000"];
        let words = lua.with_keys("acquire", &declared, &owner);
        int(lua.client.ask(&words));
        let words = lua.with_keys("release", &["job", "rlock1_queue:{job}"], &["alice"]);
        assert_eq!(int(lua.client.ask(&words)), 0);
        let many = ["a", "redisson_lock_token:{a}", "b", "rlock1_queue:{b}"];
        let words = lua.with_keys("macquire", &many, &owner);
        int(lua.client.ask(&words));
        let words = lua.with_keys("mrelease", &many, &["alice"]);
        assert_eq!(int(lua.client.ask(&words)), 2);
        let line = lua
            .client
            .error(&lua.with_keys("acquire", &["job", "other"], &owner));
        assert!(line.contains("wrong number of arguments"), "{line}");
        lua.nothing_left();
    }
}

/// Where the module is, it decides, and knows no places.
#[test]
fn the_module_gives_no_places() {
    let server = Server::start();
    for form in [Lua::library, Lua::script] {
        let mut lua = form(&server);
        assert_eq!(lua.version(), "0.9.0 module");
        lua.int("acquire job a 100000");
        let (left, at) = refused(&mut lua, "acquire job b 1000 PLACE p 60000");
        // On Redis 8 the module lets a lease end up to 1 ms later, so that none is too short.
        assert!((1..=100_002).contains(&left), "{left}");
        assert_eq!(at, -1);
        assert_eq!(lua.int("cancel job b PLACE p"), 0);
        assert_eq!(lua.int("release job a"), 0);
        lua.nothing_left();
    }
    let server = bare();
    assert_eq!(Lua::library(&server).version(), "0.9.0");
    assert_eq!(Lua::script(&server).version(), "0.9.0");
}
