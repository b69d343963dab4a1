//! What requests for permits are answered.

use redis::Value;

use crate::support::{Ask, RawClient, Server, LONG};

#[test]
fn each_grant_has_its_token_and_they_rise() {
    let server = Server::start();
    let mut client = server.raw();
    let mut last = 0;
    for owner in ["a", "b", "a", "c", "a"] {
        let token = client.take_permits("k", owner, "LIMIT 5");
        assert!(token > last, "{owner}");
        assert_eq!(client.known_token("k", owner, "permits"), Some(token));
        last = token;
    }
    assert_eq!(client.permits("k"), "a=3 b=1 c=1 mode=permits 5 5 5");
    // Also above those of another kind of lock by this name.
    client.int("RLOCK.FORCE k");
    let plain = client.take("k", "a");
    assert!(plain > last);
    client.release("k", "a");
    assert!(client.take_permits("k", "a", "LIMIT 5") > plain);
}

#[test]
fn what_is_not_free_is_not_to_be_had_and_nothing_changes() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 4 PERMITS 3");
    let before = (client.state(b"k"), client.changes());
    for words in [
        "b 1000 LIMIT 4 PERMITS 2",
        "b 1000 LIMIT 4 PERMITS 4 ONCE",
        "a 1000 LIMIT 4 PERMITS 2",
        "* 1000 LIMIT 4 PERMITS 4",
        "b 1000 READ",
        "b 1000 WRITE",
        "b 1000",
    ] {
        assert!(
            client.refused(&format!("RLOCK.ACQUIRE k {words}")),
            "{words}"
        );
    }
    assert!(client.refused("RLOCK.MACQUIRE 2 free k b 1000"));
    assert_eq!((client.state(b"k"), client.changes()), before);
    client.take_permits("k", "b", "LIMIT 4");
    assert!(client.refused("RLOCK.ACQUIRE k c 1000 LIMIT 4"));
}

#[test]
fn a_request_within_a_transaction_or_a_script_tries_once() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 1");
    let block = format!("RLOCK.ACQUIRE k b {LONG} LIMIT 1 BLOCK 0");
    let replies = client.succeed(&["MULTI", &block, "EXEC"]);
    assert_eq!(replies[2], Value::Array(vec![Value::Nil]));
    let script = "return redis.call('RLOCK.ACQUIRE',KEYS[1],'b',9000,'LIMIT',2,'BLOCK',0)";
    let eval = ["EVAL", script, "1", "other"];
    assert!(client.int(&eval) > 0);
    assert!(client.int(&eval) > 0, "the second of two");
    assert!(client.refused(&eval));
    let script = "return redis.call('RLOCK.RELEASE',KEYS[1],'b','PERMITS','ALL')";
    assert_eq!(client.int(&["EVAL", script, "1", "other"]), 0);
    client.is_free("other");
}

#[test]
fn what_is_left_is_replied_and_one_is_given_back_unless_it_is_said() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 9 PERMITS 9");
    for (words, left) in [
        ("PERMITS", 8),
        ("PERMITS 1", 7),
        ("PERMITS IFHELD", 6),
        ("permits 3 ifheld", 3),
        ("IFHELD PERMITS 1", 2),
        ("PERMITS 2", 0),
    ] {
        assert_eq!(client.int(&format!("RLOCK.RELEASE k a {words}")), left);
    }
    client.nothing_left("k");
    for words in ["PERMITS ALL", "ALL PERMITS"] {
        client.take_permits("k", "a", "LIMIT 9 PERMITS 5");
        client.take_permits("k", "b", "LIMIT 9");
        assert_eq!(client.int(&format!("RLOCK.RELEASE k a {words}")), 0);
        assert_eq!(client.permits("k"), "b=1 mode=permits 9 9 1");
        client.int("RLOCK.RELEASE k b PERMITS");
    }
}

#[test]
fn nobody_gives_back_more_than_it_has() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 9 PERMITS 3");
    client.take_permits("k", "b", "LIMIT 9 PERMITS 4");
    let before = client.state(b"k");
    let line = client.error("RLOCK.RELEASE k a PERMITS 4");
    let expected = "NOTHELD owner 'a' does not hold so many permits of 'k', but 3: nothing was \
                    given back";
    assert_eq!(line, expected);
    let line = client.error("RLOCK.RELEASE k c PERMITS");
    assert!(
        line.starts_with("NOTHELD owner 'c' does not hold 'k': "),
        "{line}"
    );
    assert_eq!(client.code("RLOCK.RELEASE k c PERMITS ALL"), "NOTHELD");
    assert_eq!(client.code("RLOCK.RELEASE free c PERMITS"), "NOTHELD");
    assert_eq!(client.code("RLOCK.RENEW k c 1000 PERMITS"), "NOTHELD");
    assert_eq!(client.int("RLOCK.RELEASE k c PERMITS IFHELD"), 0);
    assert_eq!(client.int("RLOCK.RELEASE free c PERMITS ALL IFHELD"), 0);
    assert_eq!(client.state(b"k"), before);
}

#[test]
fn a_token_says_which_hold_is_meant() {
    let server = Server::start();
    let mut client = server.raw();
    let release = |client: &mut RawClient, token: i64| {
        client.int(&format!("RLOCK.RELEASE k a PERMITS IFTOKEN {token}"))
    };
    let old = client.take_permits("k", "a", "LIMIT 9 PERMITS 2");
    assert_eq!(client.int("RLOCK.RELEASE k a PERMITS ALL"), 0);
    let token = client.take_permits("k", "a", "LIMIT 9 PERMITS 2");
    let others = client.take_permits("k", "b", "LIMIT 9 PERMITS 2");
    for wrong in [old, others, token + 1, 1] {
        assert_eq!(release(&mut client, wrong), 0);
    }
    assert_eq!(client.permits("k"), "a=2 b=2 mode=permits 9 9 4");
    assert_eq!(release(&mut client, token), 1);
    assert_eq!(release(&mut client, token), 0);
    assert_eq!(client.permits("k"), "b=2 mode=permits 9 9 2");
    let all = format!("RLOCK.RELEASE k b PERMITS ALL IFTOKEN {others}");
    assert_eq!(client.int(&all), 0);
    client.nothing_left("k");
}

#[test]
fn without_the_word_the_plain_lock_is_meant() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2");
    let before = client.state(b"k");
    for (request, asked) in [
        ("RLOCK.RELEASE k a", "as a plain lock"),
        ("RLOCK.RELEASE k a ALL", "as a plain lock"),
        ("RLOCK.RENEW k a 1000", "as a plain lock"),
        ("RLOCK.RELEASE k a READ", "for READ"),
        ("RLOCK.RENEW k a 1000 WRITE", "for WRITE"),
    ] {
        let line = client.error(request);
        let expected = format!(
            "NOTHELD owner 'a' does not hold 'k' {asked}, it holds it by permits: say PERMITS"
        );
        assert_eq!(line, expected, "{request}");
    }
    for request in ["RLOCK.RELEASE k a IFHELD", "RLOCK.RELEASE k a READ IFHELD"] {
        assert_eq!(client.int(request), 0, "{request}");
    }
    assert_eq!(client.code("RLOCK.MRENEW 1 k a 1000"), "NOTHELD");
    assert_eq!(client.state(b"k"), before);
    // And the other way round.
    for (mode, says) in [
        ("", "leave the mode out"),
        ("READ", "say READ"),
        ("WRITE", "say WRITE"),
    ] {
        client.ok("FLUSHALL");
        client.token(&format!("RLOCK.ACQUIRE k a {LONG} {mode}"));
        for request in ["RLOCK.RELEASE k a PERMITS 2", "RLOCK.RENEW k a 9 PERMITS"] {
            let line = client.error(request);
            assert!(line.starts_with("NOTHELD owner 'a' does not hold 'k' by permits, it holds"));
            assert!(line.ends_with(says), "{line}");
        }
    }
}
