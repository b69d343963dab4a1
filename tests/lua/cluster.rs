//! The function library in a cluster: what belongs to a lock lies in the slot of its key.

use redis::Value;

use super::caller::Lua;
use crate::support::{
    bare_cluster, eventually, is_try_again, keys_of, lease_key, list, orders, text, two_bare_nodes,
    Ask, Move, RawClient, Server,
};

/// The library, and then the script, each on a cluster of one node that has all slots.
fn clusters() -> impl Iterator<Item = (Server, Lua)> {
    [Lua::library, Lua::script].into_iter().map(|form| {
        let server = bare_cluster();
        let lua = form(&server);
        (server, lua)
    })
}

#[test]
fn locks_of_every_kind_work() {
    for (_server, mut lua) in clusters() {
        for key in ["doc", "{acct}:7", "job:{7}", "a{b}c{d}"] {
            for mode in ["", "READ", "WRITE"] {
                lua.int(&format!("acquire {key} a 100000 {mode}"));
                lua.int(&format!("acquire {key} a 100000 {mode}"));
                assert_eq!(lua.int(&format!("renew {key} a 100000 {mode}")), 1);
                assert!(lua.refused(&format!("acquire {key} b 100000 WRITE")));
                if mode == "READ" {
                    let slot = lua.client.int(&format!("CLUSTER KEYSLOT {key}"));
                    let lease = lease_key(key, "a", 2);
                    assert_eq!(lua.client.int(&format!("EXISTS {lease}")), 1);
                    assert_eq!(lua.client.int(&format!("CLUSTER KEYSLOT {lease}")), slot);
                }
                assert_eq!(lua.int(&format!("release {key} a {mode}")), 1);
                assert_eq!(lua.int(&format!("release {key} a {mode}")), 0);
                lua.nothing_left();
            }
        }
        lua.int("macquire 2 {x}a {x}b alice 100000");
        assert_eq!(lua.int("mrelease 2 {x}a {x}b alice"), 2);
        let line = lua.error("macquire 2 a b alice 100000");
        assert!(line.starts_with("CROSSSLOT "), "{line}");
        lua.nothing_left();
    }
}

#[test]
fn a_counter_and_a_queue_are_found() {
    for (server, mut lua) in clusters() {
        lua.client
            .ok("SET redisson_lock_token:{job} 5000000000000000");
        lua.client.int("RPUSH redisson_lock_queue:{job} u:1");
        let mut heard = subscriber(&server, &["redisson_lock__channel:{job}:u:1"]);
        assert_eq!(lua.int("acquire job a 100000"), 5_000_000_000_000_001);
        lua.int("release job a");
        assert_eq!(
            message(&mut heard),
            ["redisson_lock__channel:{job}:u:1", "0"]
        );
    }
}

/// Listens as Redisson does in a cluster, where messages are sharded.
fn subscriber(server: &Server, channels: &[&str]) -> RawClient {
    let mut client = server.raw();
    for channel in channels {
        client.ask(&["SSUBSCRIBE", channel]);
    }
    client
}

#[track_caller]
fn message(client: &mut RawClient) -> [String; 2] {
    let mut parts = list(client.read()).into_iter().map(text);
    assert_eq!(parts.next().as_deref(), Some("smessage"));
    [
        parts.next().expect("a channel"),
        parts.next().expect("a text"),
    ]
}

#[test]
fn messages_are_sharded() {
    for (server, mut lua) in clusters() {
        let mut heard = subscriber(&server, &["redisson_lock__channel:{job}"]);
        let mut shared = subscriber(&server, &["redisson_rwlock:{job}"]);
        lua.int("acquire job a 100000");
        lua.int("release job a");
        assert_eq!(message(&mut heard), ["redisson_lock__channel:{job}", "0"]);
        lua.int("acquire job a 100000 WRITE");
        lua.int("release job a WRITE");
        assert_eq!(message(&mut shared), ["redisson_rwlock:{job}", "1"]);
    }
}

/// These have a brace and no hash tag, or a tag of another text once they stand in
/// braces: what belongs to them lies elsewhere, so they have no readers, no counter and
/// wake nobody.
#[test]
fn names_whose_belongings_would_lie_elsewhere_do_without_them() {
    for (_server, mut lua) in clusters() {
        for key in ["a{b", "a{}b", "{}", "job}"] {
            let lease = lease_key(key, "a", 1);
            let elsewhere = lua.client.int(&format!("CLUSTER KEYSLOT {lease}"));
            assert_ne!(lua.client.int(&format!("CLUSTER KEYSLOT {key}")), elsewhere);
            let line = lua.error(&format!("acquire {key} a 1000 READ"));
            let expected = format!(
                "ERR in a cluster the lease key of a reader would lie in another slot than \
                 '{key}': use a name without braces, or with a whole hash tag"
            );
            assert_eq!(line, expected);
            assert_eq!(lua.client.int("DBSIZE"), 0);
            for mode in ["WRITE", ""] {
                lua.int(&format!("acquire {key} a 100000 {mode}"));
                lua.int(&format!("acquire {key} a 100000 {mode}"));
                assert_eq!(lua.int(&format!("release {key} a {mode} ALL")), 0);
            }
            lua.int(&format!("acquire {key} a 100000 LIMIT 2"));
            assert_eq!(lua.int(&format!("release {key} a PERMITS")), 0);
            assert_eq!(lua.client.int("DBSIZE"), 0);
        }
    }
    // Outside a cluster there are no slots.
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire a{b alice 100000 READ");
        assert_eq!(lua.int("release a{b alice READ"), 0);
        lua.nothing_left();
    }
}

/// The node does not have the slot: it says so, and nothing is written.
#[test]
fn a_key_of_another_node_is_refused_by_the_server() {
    let server = Server::start_bare(&[
        "--cluster-enabled",
        "yes",
        "--cluster-require-full-coverage",
        "no",
    ]);
    let mut lua = Lua::library(&server);
    lua.client.ok("CLUSTER ADDSLOTSRANGE 0 1000");
    let key = (0..)
        .map(|n| format!("k{n}"))
        .find(|key| lua.client.int(&format!("CLUSTER KEYSLOT {key}")) > 1000)
        .expect("a key");
    eventually("it knows what it has not", || {
        let reply = lua.ask(&format!("acquire {key} a 1000"));
        matches!(reply, Value::ServerError(error) if error.code() == "CLUSTERDOWN")
    });
}

/// In whatever order the keys move: a reader renews or is told to try again, nobody gets
/// in beside it, and what is refused has changed nothing.
#[test]
fn no_reader_is_lost_and_no_writer_let_in_while_their_slot_moves() {
    for form in [Lua::library, Lua::script] as [fn(&Server) -> Lua; 2] {
        let (one, two) = two_bare_nodes();
        let lua = form(&one);
        form(&two);
        for (number, order) in orders(5).into_iter().enumerate().step_by(3) {
            let lock = format!("doc{number}");
            let keys = keys_of(&lock);
            let mut slot = Move::before(&lock, &one, &two);
            slot.here.ok(&format!("SET {} 0", keys[4]));
            for reader in ["a", "a", "b"] {
                let line = format!("acquire {lock} {reader} 100000 READ");
                slot.int(&lua.request(&line));
            }
            slot.begin();
            for at in &order {
                slot.over(&keys[*at]);
                for mode in ["WRITE", ""] {
                    let line = format!("acquire {lock} w 100000 {mode}");
                    let reply = slot.ask(&lua.request(&line));
                    assert!(
                        reply == Value::Nil || is_try_again(&reply),
                        "{line}: {reply:?}"
                    );
                }
                for reader in ["a", "b"] {
                    let line = format!("renew {lock} {reader} 100000 READ");
                    let reply = slot.ask(&lua.request(&line));
                    assert!(
                        reply == Value::Int(1) || is_try_again(&reply),
                        "{line}: {reply:?}"
                    );
                    let line = format!("acquire {lock} new 100000 READ");
                    assert!(is_try_again(&slot.ask(&lua.request(&line))), "{line}");
                }
            }
            slot.arrive();
            let there = lua.on(two.raw());
            for (reader, left) in [("a", 1), ("a", 0), ("b", 0)] {
                let line = format!("release {lock} {reader} READ");
                assert_eq!(
                    slot.ask(&there.request(&line)),
                    Value::Int(left),
                    "{order:?}"
                );
            }
            let left = slot.there.ask(&format!("EXISTS {}", keys.join(" ")));
            assert_eq!(left, Value::Int(1), "but for the counter nothing is left");
        }
    }
}

/// A plain lock needs no other key to be released, nor one that is new to be taken.
#[test]
fn plain_locks_go_on_while_their_slot_moves() {
    let (one, two) = two_bare_nodes();
    let lua = Lua::library(&one);
    Lua::library(&two);
    let mut slot = Move::before("job", &one, &two);
    assert!(matches!(
        slot.ask(&lua.request("acquire job a 100000")),
        Value::Int(_)
    ));
    slot.begin();
    assert_eq!(slot.ask(&lua.request("acquire job b 100000")), Value::Nil);
    assert_eq!(slot.ask(&lua.request("release job a")), Value::Int(0));
    assert!(matches!(
        slot.ask(&lua.request("acquire job b 100000")),
        Value::Int(_)
    ));
    slot.arrive();
    assert_eq!(slot.ask(&lua.request("release job b")), Value::Int(0));
}
