//! The function library: messages wake those who wait by subscription, Redisson's
//! clients and its own.

use super::caller::{bare, Lua};
use crate::support::{Ask, Listener, Server};

fn plain(name: &str) -> (String, String) {
    (format!("redisson_lock__channel:{name}"), "0".to_owned())
}

fn shared(name: &str, text: &str) -> (String, String) {
    (format!("redisson_rwlock:{name}"), text.to_owned())
}

#[test]
fn a_plain_lock_that_is_left_free_is_announced() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire job alice 100000");
        lua.int("acquire job alice 100000");
        lua.refused("acquire job bob 1000");
        lua.int("renew job alice 60000");
        lua.error("release job bob");
        lua.int("release job alice");
        assert_eq!(heard.messages(), []);
        lua.int("release job alice");
        assert_eq!(heard.messages(), [plain("{job}")]);
        lua.int("acquire job alice 100000");
        lua.int("force job");
        assert_eq!(heard.messages(), [plain("{job}")]);
        lua.int("force job");
        assert_eq!(heard.messages(), []);
        lua.int("macquire 3 a b c alice 100000");
        lua.int("acquire b alice 100000");
        lua.int("mrelease 3 a b c alice");
        assert_eq!(heard.messages(), [plain("{a}"), plain("{c}")]);
    }
}

#[test]
fn a_writer_that_leaves_wakes_all_and_the_last_reader_one() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire doc a 100000 WRITE");
        lua.int("acquire doc a 100000 WRITE");
        lua.int("release doc a WRITE");
        assert_eq!(heard.messages(), []);
        lua.int("release doc a WRITE");
        assert_eq!(heard.messages(), [shared("{doc}", "1")]);
        for owner in ["a", "a", "b"] {
            lua.int(&format!("acquire doc {owner} 100000 READ"));
        }
        lua.int("release doc a READ ALL");
        assert_eq!(
            heard.messages(),
            [],
            "nobody can enter who could not before"
        );
        lua.int("release doc b READ");
        assert_eq!(heard.messages(), [shared("{doc}", "0")]);
        for mode in ["READ", "WRITE"] {
            lua.int(&format!("acquire doc a 100000 {mode}"));
            lua.int("force doc");
            assert_eq!(heard.messages(), [shared("{doc}", "1")]);
        }
    }
}

#[test]
fn a_writer_that_goes_on_reading_wakes_all() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        lua.int("acquire doc a 100000 WRITE");
        lua.int("acquire doc a 100000 READ");
        lua.int("release doc a WRITE");
        assert_eq!(heard.messages(), [shared("{doc}", "1")]);
        lua.int("release doc a READ");
        assert_eq!(heard.messages(), [shared("{doc}", "0")]);
        lua.int("acquire doc a 100000 WRITE");
        lua.int("acquire doc a 100000 READ");
        lua.int("release doc a READ");
        assert_eq!(heard.messages(), [], "it still writes");
    }
}

#[test]
fn readers_that_were_found_dead_leave_it_free() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        let leftover = |lua: &mut Lua| {
            lua.client.int("HSET doc mode read dead 1");
            lua.client.int("PEXPIRE doc 100000");
        };
        leftover(&mut lua);
        lua.error("release doc dead READ");
        assert_eq!(heard.messages(), [shared("{doc}", "0")]);
        leftover(&mut lua);
        lua.int("acquire doc a 100000 WRITE");
        assert_eq!(heard.messages(), [], "it was taken");
    }
}

#[test]
fn the_head_of_a_fair_locks_queue_is_woken_on_its_own_channel() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        let (queue, places) = ("redisson_lock_queue:{job}", "redisson_lock_timeout:{job}");
        let own = |owner: &str| plain(&format!("{{job}}:{owner}"));
        let mut freed = |lua: &mut Lua| {
            lua.int("acquire job alice 100000");
            lua.int("release job alice");
            heard.messages()
        };
        lua.client.int(&format!("RPUSH {queue} u:1 u:2 u:3"));
        assert_eq!(freed(&mut lua), [plain("{job}"), own("u:1")]);
        // Whose place has run out is passed over, and left to Redisson to remove.
        lua.client
            .int(&format!("ZADD {places} 1000 u:1 4000000000000 u:2"));
        assert_eq!(freed(&mut lua), [plain("{job}"), own("u:2")]);
        lua.client.int(&format!("ZADD {places} 1000 u:2 1000 u:3"));
        assert_eq!(freed(&mut lua), [plain("{job}")]);
        assert_eq!(lua.client.int(&format!("LLEN {queue}")), 3);
    }
}

#[test]
fn a_name_with_a_hash_tag_is_used_as_it_is() {
    for (server, mut lua) in Lua::both() {
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        for (key, name) in [
            ("{acct}:7", "{acct}:7"),
            ("job:{7}", "job:{7}"),
            ("a}", "{a}}"),
        ] {
            lua.int(&format!("acquire {key} alice 1000"));
            lua.int(&format!("release {key} alice"));
            lua.int(&format!("acquire {key} alice 1000 WRITE"));
            lua.int(&format!("release {key} alice WRITE"));
            assert_eq!(heard.messages(), [plain(name), shared(name, "1")]);
        }
    }
}

#[test]
fn subscribers_of_a_replica_receive_it_too() {
    let master = bare();
    let port = master.port().to_string();
    let replica = Server::start_bare(&["--replicaof", "127.0.0.1", &port]);
    master.counts_its_replica();
    let mut heard = Listener::patterns(&replica, &["redisson_*"]);
    let mut lua = Lua::library(&master);
    lua.int("acquire job alice 100000");
    lua.int("release job alice");
    assert_eq!(heard.until(&plain("{job}")), [plain("{job}")]);
}
