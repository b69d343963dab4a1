//! READ and WRITE on the commands: who may hold with whom, and what is answered
//! to those who hold in another mode.

use crate::support::{longest, Ask, RawClient, Server};

#[test]
fn readers_share_and_a_writer_is_alone() {
    let server = Server::start();
    let mut client = server.raw();
    for (held, may_read) in [("", false), ("WRITE", false), ("READ", true)] {
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE doc alice 60000 {held}"));
        for wait in ["", "BLOCK 3"] {
            for wanted in ["", "WRITE"] {
                let request = format!("RLOCK.ACQUIRE doc carol 60000 {wanted} {wait}");
                assert!(client.refused(&request), "'{held}', then {request}");
            }
            let request = format!("RLOCK.ACQUIRE doc bob 60000 READ {wait}");
            assert_eq!(
                client.refused(&request),
                !may_read,
                "'{held}', then {request}"
            );
        }
    }
    for number in 0..50 {
        client.take_read("doc", &format!("reader:{number}"));
    }
    assert!(client.refused("RLOCK.ACQUIRE doc carol 60000 WRITE"));
    for number in 0..50 {
        client.int(&format!("RLOCK.RELEASE doc reader:{number} READ"));
    }
    client.int("RLOCK.RELEASE doc alice READ");
    client.int("RLOCK.RELEASE doc bob READ ALL");
    client.take_write("doc", "carol");
}

#[test]
fn modes_are_words_in_any_case_and_order_once() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE doc alice 60000 read BLOCK 5 ONCE");
    client.int("rlock.acquire doc bob 60000 once block 0 Read");
    assert_eq!(client.hash("doc"), "alice=1 bob=1 mode=read");
    client.int("RLOCK.RENEW doc bob 60000 rEAD");
    assert_eq!(client.int("RLOCK.RELEASE doc bob all read"), 0);
    assert_eq!(client.int("RLOCK.RELEASE doc alice Read aLL"), 0);
    client.int("RLOCK.ACQUIRE doc alice 60000 ONCE write");
    client.int("RLOCK.RENEW doc alice 60000 Write");
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE all"), 0);

    client.take_read("doc", "alice");
    let (before, changes) = (client.everything(), client.changes());
    for (request, word) in [
        ("RLOCK.ACQUIRE doc alice 60000 READ WRITE", "WRITE"),
        ("RLOCK.ACQUIRE doc alice 60000 WRITE BLOCK 0 READ", "READ"),
        ("RLOCK.ACQUIRE doc bob 60000 READ read", "read"),
        ("RLOCK.ACQUIRE doc bob 60000 WRITE WRITE", "WRITE"),
        ("RLOCK.RELEASE doc alice READ WRITE", "WRITE"),
        ("RLOCK.RELEASE doc alice READ ALL READ", "READ"),
        ("RLOCK.RENEW doc alice 60000 WRITE READ", "READ"),
        ("RLOCK.RENEW doc alice 60000 READ READ", "READ"),
    ] {
        let line = client.error(request);
        let begin = format!("ERR syntax error at '{word}'");
        assert!(line.starts_with(&begin), "{request}: {line}");
    }
    assert_eq!(client.everything(), before);
    assert_eq!(client.changes(), changes);
}

#[test]
fn a_plain_lock_does_not_mix_with_read_or_write() {
    let server = Server::start();
    let mut client = server.raw();
    let mut refuses = |held: &str, wanted: &[&str]| {
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE doc alice 60000 {held}"));
        let (before, changes) = (client.everything(), client.changes());
        for wanted in wanted {
            for more in ["", "ONCE", "BLOCK 0", "ONCE BLOCK 0"] {
                let request = format!("RLOCK.ACQUIRE doc alice 1000 {wanted} {more}");
                let line = client.error(&request);
                assert!(
                    line.starts_with("WRONGMODE "),
                    "'{held}', {request}: {line}"
                );
                assert!(line.contains("'alice'") && line.contains("'doc'"), "{line}");
            }
        }
        assert_eq!(client.everything(), before);
        assert_eq!(client.changes(), changes);
    };
    refuses("", &["READ", "WRITE"]);
    refuses("READ", &[""]);
    refuses("WRITE", &[""]);
}

/// What RELEASE and RENEW answer to an owner that holds nothing in that mode.
#[track_caller]
fn not_held(client: &mut RawClient, owner: &str, mode: &str) -> String {
    let (before, changes) = (client.everything(), client.changes());
    let mut lines = [
        format!("RLOCK.RELEASE doc {owner} {mode}"),
        format!("RLOCK.RELEASE doc {owner} {mode} ALL"),
        format!("RLOCK.RENEW doc {owner} 1000 {mode}"),
    ]
    .map(|request| client.error(&request))
    .to_vec();
    assert_eq!(client.everything(), before);
    assert_eq!(client.changes(), changes);
    lines.dedup();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("NOTHELD "), "{lines:?}");
    lines.remove(0)
}

#[test]
fn the_error_of_who_does_not_hold_in_that_mode_names_the_mode_it_holds() {
    let server = Server::start();
    let mut client = server.raw();
    for (held, spoken, named) in [
        ("READ", "", ["READ", "READ"]),
        ("WRITE", "", ["WRITE", "WRITE"]),
        ("READ", "WRITE", ["READ", "READ"]),
        ("WRITE", "READ", ["WRITE", "WRITE"]),
        ("", "READ", ["plain", "exclusive"]),
        ("", "WRITE", ["plain", "exclusive"]),
    ] {
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE doc alice 60000 {held}"));
        let line = not_held(&mut client, "alice", spoken);
        let end = line
            .rsplit_once("holds it")
            .expect("the mode that it holds")
            .1;
        let tells = named.iter().any(|name| end.contains(name));
        assert!(tells, "holds '{held}', says '{spoken}': {line}");
    }
    client.ok("FLUSHALL");
    client.take_read("doc", "alice");
    let line = not_held(&mut client, "alice", "");
    assert!(line.ends_with("holds it for READ: say READ"), "{line}");

    // Neither does somebody else, or anybody on a free lock.
    for mode in ["", "READ", "WRITE"] {
        let line = not_held(&mut client, "bob", mode);
        assert!(!line.contains("holds it for"), "{line}");
    }
    client.ok("FLUSHALL");
    for mode in ["", "READ", "WRITE"] {
        not_held(&mut client, "alice", mode);
    }
}

#[test]
fn releasing_one_mode_leaves_the_other() {
    let server = Server::start();
    let mut client = server.raw();
    for all in ["", "ALL"] {
        client.take_write("doc", "alice");
        client.take_read("doc", "alice");
        let released = client.int(&format!("RLOCK.RELEASE doc alice WRITE {all}"));
        assert_eq!(released, 0);
        assert_eq!(client.hash("doc"), "alice=1 mode=read");
        assert_eq!(client.mode("doc"), "read");
        not_held(&mut client, "alice", "WRITE");
        client.take_read("doc", "bob");
        client.int("RLOCK.RELEASE doc bob READ");
        assert_eq!(
            client.int(&format!("RLOCK.RELEASE doc alice READ {all}")),
            0
        );
        client.nothing_left("doc");

        client.take_write("doc", "alice");
        client.take_read("doc", "alice");
        let released = client.int(&format!("RLOCK.RELEASE doc alice READ {all}"));
        assert_eq!(released, 0);
        assert_eq!(client.hash("doc"), "alice:write=1 mode=write");
        not_held(&mut client, "alice", "READ");
        assert!(client.refused("RLOCK.ACQUIRE doc bob 1000 READ"));
        client.int(&format!("RLOCK.RELEASE doc alice WRITE {all}"));
        client.nothing_left("doc");
    }
}

#[test]
fn all_ends_every_hold_in_that_mode_and_of_that_owner() {
    let server = Server::start();
    let mut client = server.raw();
    for _ in 0..3 {
        client.take_write("doc", "alice");
        client.take_read("doc", "alice");
    }
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE ALL"), 0);
    assert_eq!(client.hash("doc"), "alice=3 mode=read");
    client.take_read("doc", "bob");
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ ALL"), 0);
    assert_eq!(client.hash("doc"), "bob=1 mode=read");
    assert!(client.leases("doc", "alice").is_empty());
    assert_eq!(client.int("DBSIZE"), 2);
}

#[test]
fn once_gives_the_hold_under_way_in_the_same_mode_only() {
    let server = Server::start();
    let mut client = server.raw();
    let again = |client: &mut RawClient, mode: &str| {
        let before = client.hash("doc");
        let once = format!("RLOCK.ACQUIRE doc alice 1000 {mode} ONCE");
        let token = client.token(&once);
        assert_eq!(client.int(&format!("{once} BLOCK 0")), token, "{mode}");
        assert_eq!(client.hash("doc"), before, "{mode}");
        token
    };
    let read = client.token("RLOCK.ACQUIRE doc alice 60000 READ ONCE");
    assert_eq!(again(&mut client, "READ"), read);
    let token = client.token("RLOCK.ACQUIRE doc alice 60000 WRITE ONCE");
    assert!(token > read, "an upgrade has a token of its own");
    let both = "alice:write=1 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
    again(&mut client, "READ");
    assert_eq!(again(&mut client, "WRITE"), token);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    assert_eq!(again(&mut client, "WRITE"), token);
    client.int("RLOCK.ACQUIRE doc alice 60000 READ ONCE BLOCK 0");
    assert_eq!(client.hash("doc"), both);

    // The connection as the owner implies it.
    client.ok("FLUSHALL");
    client.int("RLOCK.ACQUIRE doc * 60000 READ");
    assert!(client
        .error("RLOCK.ACQUIRE doc * 60000 READ")
        .starts_with("HELD "));
    client.int("RLOCK.ACQUIRE doc * 60000 WRITE");
    assert!(client
        .error("RLOCK.ACQUIRE doc * 60000 WRITE")
        .starts_with("HELD "));
    let owner = client.text("RLOCK.OWNER");
    let expected = format!("{owner} write 1, {owner} read 1");
    assert_eq!(client.held_by("doc"), expected);
    assert_eq!(client.int("RLOCK.RELEASE doc * WRITE"), 0);
    assert_eq!(client.int("RLOCK.RELEASE doc * READ"), 0);
    client.nothing_left("doc");
}

#[test]
fn info_shows_each_mode_of_each_holder() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    client.take_read("doc", "bob");
    assert_eq!(client.mode("doc"), "read");
    assert_eq!(client.held_by("doc"), "alice read 1, bob read 2");
    client.int("RLOCK.RELEASE doc alice READ");
    client.take_write("doc", "bob");
    assert_eq!(client.mode("doc"), "write");
    let all = client.info("doc").holders;
    let modes: Vec<_> = all.iter().map(|hold| hold.mode.as_str()).collect();
    assert_eq!(modes, ["write", "read"], "the writing first");
    for hold in &all {
        assert_eq!(hold.owner, "bob");
        let remaining = hold.remaining_ms.expect("a lease");
        assert!((1..=longest(100_000)).contains(&remaining), "{hold:?}");
    }
}

#[test]
fn other_keys_are_no_read_write_locks() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("SET string 1");
    client.int("RPUSH list a");
    client.int("HSET data name alice");
    client.int("HSET several a 1 b 1");
    for key in ["string", "list", "data", "several"] {
        let (before, changes) = (client.state(key.as_bytes()), client.changes());
        for request in [
            format!("RLOCK.ACQUIRE {key} a 1000 READ"),
            format!("RLOCK.ACQUIRE {key} a 1000 WRITE"),
            format!("RLOCK.ACQUIRE {key} a 1000 READ BLOCK 0"),
            format!("RLOCK.ACQUIRE {key} a 1000 WRITE BLOCK 0 ONCE"),
            format!("RLOCK.RELEASE {key} a READ"),
            format!("RLOCK.RELEASE {key} a WRITE ALL"),
            format!("RLOCK.RENEW {key} a 1000 READ"),
            format!("RLOCK.RENEW {key} a 1000 WRITE"),
        ] {
            let line = client.error(&request);
            assert!(line.starts_with("WRONGTYPE "), "{request}: {line}");
        }
        assert_eq!(client.state(key.as_bytes()), before, "{key}");
        assert_eq!(client.changes(), changes, "{key}");
    }
    for owner in ["mode", "alice:write", ":write"] {
        for mode in ["READ", "WRITE"] {
            let line = client.error(&format!("RLOCK.ACQUIRE doc {owner} 1000 {mode}"));
            assert!(line.starts_with("ERR the owner must not be"), "{line}");
        }
    }
    assert_eq!(client.int("EXISTS doc"), 0);
}
