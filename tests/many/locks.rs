//! MACQUIRE, MRELEASE, MRENEW: several locks at once, or none of them.

use redis::Value;

use crate::support::{bulk, eventually, lease_from, list, token, Ask, RawClient, Server};

#[test]
fn all_keys_are_taken_at_once_with_one_lease() {
    let server = Server::start();
    let mut client = server.raw();
    let take = "RLOCK.MACQUIRE 3 x y z alice 60000";
    let (_, ends) = lease_from(60_000, || client.token(take));
    let deadline = client.deadline("x");
    assert!(ends.contains(&deadline), "{deadline} in {ends:?}");
    for key in ["x", "y", "z"] {
        assert_eq!(client.hash(key), "alice=1");
        assert_eq!(client.mode(key), "exclusive");
        assert_eq!(client.deadline(key), deadline, "{key}");
        let other = format!("RLOCK.ACQUIRE {key} bob 1000");
        assert!(client.refused(&other), "{key}");
    }
    assert_eq!(client.int("DBSIZE"), 3);
    assert_eq!(client.int("RLOCK.MRELEASE 3 x y z alice"), 3);
    assert_eq!(client.int("DBSIZE"), 0);
}

#[test]
fn one_key_is_a_plain_lock() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.token("RLOCK.MACQUIRE 1 x alice 60000");
    assert_eq!(client.int("RLOCK.ACQUIRE x alice 1000"), first);
    assert_eq!(client.int("RLOCK.MRENEW 1 x alice 60000"), 1);
    assert_eq!(client.int("RLOCK.MRELEASE 1 x alice"), 1);
    assert_eq!(client.int("RLOCK.RELEASE x alice"), 0);
    client.is_free("x");
}

#[test]
fn when_one_key_is_held_none_is_taken() {
    let server = Server::start();
    let mut client = server.raw();
    for held in [
        "RLOCK.ACQUIRE y bob 60000",
        "RLOCK.ACQUIRE y bob 60000 READ",
        "RLOCK.ACQUIRE y bob 60000 WRITE",
        "RLOCK.MACQUIRE 2 y other bob 60000",
    ] {
        client.ok("FLUSHALL");
        client.int(held);
        let (before, changes) = (client.everything(), client.changes());
        for keys in ["3 x y z", "3 y x z", "3 x z y", "1 y"] {
            for more in ["", "ONCE", "BLOCK 2", "block 2 once"] {
                let request = format!("RLOCK.MACQUIRE {keys} alice 60000 {more}");
                assert!(client.refused(&request), "{held}: {request}");
            }
        }
        assert_eq!(client.everything(), before, "{held}");
        assert_eq!(client.changes(), changes, "{held}");
        for key in ["x", "z"] {
            client.is_free(key);
        }
    }
}

#[test]
fn when_one_key_is_no_lock_none_is_taken() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("SET string 1");
    client.int("HSET data name alice");
    client.int("RPUSH list a");
    let changes = client.changes();
    for key in ["string", "data", "list"] {
        for keys in [format!("2 x {key}"), format!("2 {key} x")] {
            for more in ["", "BLOCK 0", "ONCE"] {
                let line = client.error(&format!("RLOCK.MACQUIRE {keys} alice 1000 {more}"));
                assert!(line.starts_with("WRONGTYPE "), "{keys}: {line}");
            }
        }
    }
    client.is_free("x");
    assert_eq!(client.changes(), changes);
}

#[test]
fn the_token_is_one_for_all() {
    let server = Server::start();
    let mut client = server.raw();
    let before = client.int("RLOCK.ACQUIRE other bob 60000");
    let all = client.token("RLOCK.MACQUIRE 3 x y z alice 60000");
    assert!(all > before);
    for key in ["x", "y", "z"] {
        let known = client.known_token(key, "alice", "exclusive");
        assert_eq!(known, Some(all), "{key}");
        let nested = client.int(&format!("RLOCK.ACQUIRE {key} alice 1000"));
        assert_eq!(nested, all, "{key}");
    }
    // With a key of before among them it is above that one's too.
    client.int("RLOCK.RELEASE y alice ALL");
    let more = client.token("RLOCK.MACQUIRE 2 x y alice 60000");
    assert!(more > all, "{more} after {all}");
    assert_eq!(client.int("RLOCK.ACQUIRE y alice 1000"), more);
}

#[test]
fn keys_that_are_held_already_nest() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE x alice 90000");
    let longer = client.deadline("x");
    let take = "RLOCK.MACQUIRE 2 x y alice 60000";
    let (_, ends) = lease_from(60_000, || client.int(take));
    assert_eq!(client.hash("x"), "alice=2");
    assert_eq!(client.hash("y"), "alice=1");
    assert_eq!(client.deadline("x"), longer, "never shorter");
    assert!(ends.contains(&client.deadline("y")));
    client.int("RLOCK.MACQUIRE 2 y x alice 95000");
    assert_eq!(client.hash("x"), "alice=3");
    assert_eq!(client.hash("y"), "alice=2");
    assert!(client.deadline("x") > longer);
}

#[test]
fn once_takes_what_is_free_and_adds_no_hold_to_what_is_held() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.token("RLOCK.ACQUIRE y alice 60000");
    let alone = "RLOCK.MACQUIRE 1 y alice 60000 ONCE";
    assert_eq!(client.int(alone), first);
    for keys in ["3 x y z", "3 y x z", "2 y x"] {
        client.succeed(&["RLOCK.FORCE x", "RLOCK.FORCE z"]);
        for more in ["ONCE", "ONCE BLOCK 0"] {
            let token = client.token(&format!("RLOCK.MACQUIRE {keys} alice 60000 {more}"));
            assert!(token > first, "{keys}: x and z were free");
            assert_eq!(client.hash("x"), "alice=1", "{keys}");
            assert_eq!(client.hash("y"), "alice=1", "{keys}");
        }
    }
    // Retried it is the same request, and gives the same token.
    let all = "RLOCK.MACQUIRE 3 x y z alice 60000 ONCE";
    let token = client.token(all);
    let changes = client.changes();
    assert_eq!(client.int(&all.replace("60000", "1000")), token);
    assert_eq!(client.changes(), changes);
    assert_eq!(client.hash("z"), "alice=1");
}

#[test]
fn the_connection_as_the_owner_does_not_nest() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.MACQUIRE 2 x y * 60000");
    let owner = client.text("RLOCK.OWNER");
    assert_eq!(client.hash("x"), format!("{owner}=1"));
    let line = client.error("RLOCK.MACQUIRE 2 y z * 60000");
    assert!(line.starts_with("HELD "), "{line}");
    client.is_free("z");
    assert_eq!(client.int("RLOCK.MRENEW 2 x y * 60000"), 1);
    assert_eq!(client.int("RLOCK.MRELEASE 3 x y z *"), 2);
    assert_eq!(client.int("DBSIZE"), 0);
}

#[test]
fn many_keys_are_plain_locks_and_do_not_mix_with_modes() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("r", "alice");
    client.take_write("w", "alice");
    let (before, changes) = (client.everything(), client.changes());
    for keys in ["2 x r", "2 r x", "2 w x", "3 x w r"] {
        for more in ["", "ONCE", "BLOCK 0"] {
            let line = client.error(&format!("RLOCK.MACQUIRE {keys} alice 1000 {more}"));
            assert!(line.starts_with("WRONGMODE "), "{keys} {more}: {line}");
        }
    }
    // What is held in a mode is not released or renewed here.
    assert_eq!(client.int("RLOCK.MRELEASE 3 r w x alice"), 0);
    let line = client.error("RLOCK.MRENEW 2 r w alice 1000");
    assert!(line.starts_with("NOTHELD "), "{line}");
    assert_eq!(client.everything(), before);
    assert_eq!(client.changes(), changes);

    client.int("RLOCK.MACQUIRE 2 x y alice 60000");
    for mode in ["READ", "WRITE"] {
        let line = client.error(&format!("RLOCK.ACQUIRE x alice 1000 {mode}"));
        assert!(line.starts_with("WRONGMODE "), "{line}");
    }
}

#[test]
fn a_release_counts_the_keys_on_which_a_hold_ended() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.MACQUIRE 3 x y z alice 60000");
    client.int("RLOCK.ACQUIRE x alice 60000");
    client.int("RLOCK.ACQUIRE b bob 60000");
    assert_eq!(client.int("RLOCK.MRELEASE 4 x y b free alice"), 2);
    assert_eq!(client.hash("x"), "alice=1");
    client.is_free("y");
    assert_eq!(client.int("RLOCK.MRELEASE 3 x y z alice"), 2);
    client.is_free("x");
    assert_eq!(client.int("RLOCK.MRELEASE 3 x y z alice"), 0);
    assert_eq!(client.int("RLOCK.MRELEASE 1 b alice"), 0);
    assert_eq!(client.hash("b"), "bob=1");
}

#[test]
fn a_renewal_is_for_all_keys_or_none() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.MACQUIRE 3 x y z alice 60000");
    for ms in [20_000, 90_000] {
        let renew = format!("RLOCK.MRENEW 3 z x y alice {ms}");
        let (done, ends) = lease_from(ms, || client.int(&renew));
        assert_eq!(done, 1);
        let deadline = client.deadline("x");
        assert!(ends.contains(&deadline), "{deadline} in {ends:?}");
        for key in ["y", "z"] {
            assert_eq!(client.deadline(key), deadline, "{key}");
        }
    }
    client.int("RLOCK.RELEASE y alice");
    let not_held = |client: &mut RawClient| {
        let (before, changes) = (client.everything(), client.changes());
        for keys in ["3 x y z", "3 y x z", "3 x z y", "1 y"] {
            let line = client.error(&format!("RLOCK.MRENEW {keys} alice 1000"));
            assert!(line.starts_with("NOTHELD "), "{keys}: {line}");
            assert!(line.contains("'y'"), "{keys}: {line}");
        }
        assert_eq!(client.everything(), before);
        assert_eq!(client.changes(), changes);
    };
    not_held(&mut client);
    client.int("RLOCK.ACQUIRE y bob 60000");
    not_held(&mut client);
}

#[test]
fn after_the_grant_the_keys_live_and_end_singly() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.token("RLOCK.MACQUIRE 4 w x y z alice 60000");
    assert_eq!(client.int("RLOCK.RELEASE x alice"), 0);
    client.is_free("x");
    client.int("RLOCK.RENEW y alice 90000");
    assert!(client.deadline("y") > client.deadline("z"));
    assert_eq!(client.int("RLOCK.FORCE z"), 1);
    client.int("RLOCK.RENEW w alice 50");
    eventually("its lease is over", || client.int("EXISTS w") == 0);
    assert_eq!(client.hash("y"), "alice=1");
    let other = client.token("RLOCK.MACQUIRE 3 w x z bob 60000");
    assert!(other > first);
    assert_eq!(client.int("RLOCK.MRELEASE 4 w x y z alice"), 1);
    assert_eq!(client.int("DBSIZE"), 3);
}

#[test]
fn the_leases_of_all_keys_end_together() {
    let server = Server::start_with(&["--hz", "1"]);
    let mut client = server.raw();
    client.int("RLOCK.MACQUIRE 5 a b c d e alice 100");
    eventually("all are over", || client.int("DBSIZE") == 0);
    assert_eq!(client.int("RLOCK.MRELEASE 5 a b c d e alice"), 0);
    client.int("RLOCK.MACQUIRE 5 a b c d e bob 60000");
}

#[test]
fn transactions_and_scripts_lock_as_commands_do() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE held bob 60000");
    client.ok("MULTI");
    for request in [
        "RLOCK.MACQUIRE 2 x held alice 60000 BLOCK 0",
        "RLOCK.MACQUIRE 2 x y alice 60000 BLOCK 0",
        "RLOCK.MACQUIRE 2 x y carol 60000",
        "RLOCK.MRENEW 2 x y alice 90000",
        "RLOCK.MRELEASE 2 x y alice",
    ] {
        assert_eq!(client.text(request), "QUEUED");
    }
    let replies = client.list("EXEC");
    assert_eq!(replies[0], Value::Nil);
    token(replies[1].clone());
    assert_eq!(replies[2..], [Value::Nil, Value::Int(1), Value::Int(2)]);

    let script = "
        local none = redis.call('RLOCK.MACQUIRE', 2, KEYS[1], KEYS[2], 'a', 60000, 'BLOCK', 0)
        local both = redis.call('RLOCK.MACQUIRE', 2, KEYS[2], KEYS[3], 'a', 60000)
        return {tostring(none), both, redis.call('HGET', KEYS[3], 'a'),
            redis.call('RLOCK.MRELEASE', 2, KEYS[3], KEYS[2], 'a')}";
    let reply = client.ask(&["EVAL", script, "3", "held", "x", "y"]);
    let replies = list(reply);
    assert_eq!(replies[0], bulk("false"));
    token(replies[1].clone());
    assert_eq!(replies[2..], [bulk("1"), Value::Int(2)]);
    // Nobody was left waiting.
    client.is_free("x");
    client.is_free("y");
}
