//! Requests that are refused for their arguments or for who asks: the exact
//! lines, and that nothing changes.

use crate::support::{Ask, Server, Untouched, Wire};

const MOST_MS: i64 = (1 << 53) - 1;

#[test]
fn a_lease_is_a_whole_number_of_ms() {
    let mut test = Untouched::new();
    let too_much = (MOST_MS + 1).to_string();
    let bad = [
        "0",
        "-1",
        &too_much,
        "99999999999999999999999999",
        "9223372036854775808",
        "ten",
        "+5",
        "05",
        "1.5",
        "1e3",
        "0x10",
        "",
        " 5",
        "5 ",
        "BLOCK",
    ];
    for lease in bad {
        let line = format!(
            "ERR the lease must be a whole number of ms from 1 to {MOST_MS}, got '{lease}'"
        );
        for command in ["RLOCK.ACQUIRE", "RLOCK.RENEW"] {
            for key in ["job", "free"] {
                let args = [command, key, "alice", lease].map(str::as_bytes);
                test.refuses(&args, &line);
            }
        }
    }
}

#[test]
fn block_takes_a_whole_number_of_ms() {
    let mut test = Untouched::new();
    let too_much = (MOST_MS + 1).to_string();
    for ms in ["-1", &too_much, "soon", "+5", "00", "0.5", "", "ONCE"] {
        let line = format!(
            "ERR BLOCK must be a whole number of ms from 0 (for ever) to {MOST_MS}, got '{ms}'"
        );
        for owner in ["alice", "bob"] {
            let args = ["RLOCK.ACQUIRE", "job", owner, "1000", "BLOCK", ms].map(str::as_bytes);
            test.refuses(&args, &line);
        }
    }
    for request in [
        "RLOCK.ACQUIRE job bob 1000 BLOCK",
        "RLOCK.ACQUIRE job bob 1000 ONCE block",
    ] {
        let line = test.client.error(request);
        let begin = "ERR syntax error: BLOCK needs a number of ms; usage: RLOCK.ACQUIRE key owner";
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn a_keyword_comes_once_and_is_one_of_those_allowed() {
    let mut test = Untouched::new();
    for (request, word, usage) in [
        ("RLOCK.ACQUIRE job bob 1000 NX", "NX", "ACQUIRE"),
        ("RLOCK.ACQUIRE job bob 1000 ALL", "ALL", "ACQUIRE"),
        ("RLOCK.ACQUIRE job bob 1000 ONCE once", "once", "ACQUIRE"),
        ("RLOCK.ACQUIRE job bob 1000 ONCE 5", "5", "ACQUIRE"),
        (
            "RLOCK.ACQUIRE job bob 1000 BLOCK 5 Block 5",
            "Block",
            "ACQUIRE",
        ),
        ("RLOCK.ACQUIRE job bob 1000 BLOCK 5 6", "6", "ACQUIRE"),
        (
            "RLOCK.ACQUIRE job alice 1000 'ONCE'",
            "\\'ONCE\\'",
            "ACQUIRE",
        ),
        ("RLOCK.RELEASE job alice ONCE", "ONCE", "RELEASE"),
        ("RLOCK.RELEASE job alice ALL all", "all", "RELEASE"),
        ("RLOCK.RELEASE job bob ALLES", "ALLES", "RELEASE"),
        ("RLOCK.RENEW job alice 1000 ONCE", "ONCE", "RENEW"),
        ("RLOCK.RENEW job alice 1000 BLOCK 5", "BLOCK", "RENEW"),
        ("RLOCK.RENEW job alice 1000 2000", "2000", "RENEW"),
    ] {
        let line = test.client.error(request);
        let begin = format!(
            "ERR syntax error at '{word}': each keyword once, none but these; usage: \
             RLOCK.{usage} key owner"
        );
        assert!(line.starts_with(&begin), "{request}: {line}");
    }
    let empty: [&[u8]; 5] = [b"RLOCK.ACQUIRE", b"job", b"bob", b"1000", b""];
    let line = test.client.error(&empty);
    assert!(line.starts_with("ERR syntax error at '': "), "{line}");
}

#[test]
fn arguments_are_neither_missing_nor_too_many() {
    let mut test = Untouched::new();
    for (request, usage) in [
        ("RLOCK.ACQUIRE", "RLOCK.ACQUIRE key owner lease"),
        ("RLOCK.ACQUIRE job", "RLOCK.ACQUIRE key owner lease"),
        ("RLOCK.ACQUIRE job alice", "RLOCK.ACQUIRE key owner lease"),
        ("RLOCK.RELEASE", "RLOCK.RELEASE key owner"),
        ("RLOCK.RELEASE job", "RLOCK.RELEASE key owner"),
        ("RLOCK.RENEW", "RLOCK.RENEW key owner lease"),
        ("RLOCK.RENEW job", "RLOCK.RENEW key owner lease"),
        ("RLOCK.RENEW job alice", "RLOCK.RENEW key owner lease"),
        ("RLOCK.FORCE", "RLOCK.FORCE key"),
        ("RLOCK.INFO", "RLOCK.INFO key"),
        ("RLOCK.OWNER job", "RLOCK.OWNER"),
    ] {
        let line = test.client.error(request);
        let begin = format!("ERR wrong number of arguments; usage: {usage}");
        assert!(line.starts_with(&begin), "{request}: {line}");
    }
}

#[test]
fn an_owner_is_1_to_512_bytes_and_means_nothing_in_a_locks_hash() {
    let mut test = Untouched::new();
    let long = "x".repeat(513);
    let size = |got: usize| format!("ERR the owner must be 1 to 512 bytes long, got {got}");
    let reserved = |owner: &str| {
        format!(
            "ERR the owner must not be 'mode' or end in ':write', which have a meaning in the \
             hash of a lock; got '{owner}'"
        )
    };
    for (owner, line) in [
        ("", size(0)),
        (long.as_str(), size(513)),
        ("mode", reserved("mode")),
        (":write", reserved(":write")),
        ("alice:write", reserved("alice:write")),
    ] {
        for key in ["job", "free"] {
            let requests: [&[&str]; 7] = [
                &["RLOCK.ACQUIRE", key, owner, "1000"],
                &["RLOCK.ACQUIRE", key, owner, "1000", "ONCE"],
                &["RLOCK.ACQUIRE", key, owner, "1000", "BLOCK", "0"],
                &["RLOCK.RELEASE", key, owner],
                &["RLOCK.RELEASE", key, owner, "ALL"],
                &["RLOCK.RENEW", key, owner, "1000"],
                &["rlock.renew", key, owner, "1000"],
            ];
            for request in requests {
                let args: Vec<&[u8]> = request.iter().map(|arg| arg.as_bytes()).collect();
                test.refuses(&args, &line);
            }
        }
    }
}

#[test]
fn an_owner_that_does_not_hold_the_lock_gets_the_error() {
    let mut test = Untouched::new();
    for (key, owner) in [("job", "bob"), ("job", "Alice"), ("free", "alice")] {
        let line = format!(
            "NOTHELD owner '{owner}' does not hold '{key}': its lease ended, it was released, or \
             never acquired"
        );
        test.refuses(&format!("RLOCK.RELEASE {key} {owner}"), &line);
        test.refuses(&format!("RLOCK.RELEASE {key} {owner} ALL"), &line);
        test.refuses(&format!("RLOCK.RENEW {key} {owner} 1000"), &line);
    }
}

#[test]
fn the_reader_or_writer_of_a_lock_cannot_take_it_as_a_plain_one() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET doc mode read uuid:1 1 uuid:2 1");
    client.ok("SET {doc}:uuid:1:rwlock_timeout:1 1 PX 3600000");
    client.ok("SET {doc}:uuid:2:rwlock_timeout:1 1 PX 3600000");
    client.int("HSET page mode write uuid:1:write 1");
    client.int("PEXPIRE doc 3600000");
    client.int("PEXPIRE page 3600000");
    for (key, mode) in [("doc", "READ"), ("page", "WRITE")] {
        let (before, changes) = (client.state(key.as_bytes()), client.changes());
        for options in ["", "ONCE", "BLOCK 0"] {
            assert_eq!(
                client.error(&format!("RLOCK.ACQUIRE {key} uuid:1 1000 {options}")),
                format!(
                    "WRONGMODE owner 'uuid:1' holds '{key}' for {mode}, which does not mix with \
                     a plain lock: release it first, or use another name"
                )
            );
        }
        assert!(client.refused(&format!("RLOCK.ACQUIRE {key} uuid:9 1000")));
        assert!(client.refused(&format!("RLOCK.ACQUIRE {key} uuid:9 1000 BLOCK 5 ONCE")));
        for request in [
            "RELEASE K uuid:1",
            "RELEASE K uuid:1 ALL",
            "RENEW K uuid:1 9",
        ] {
            assert_eq!(
                client.error(&format!("RLOCK.{}", request.replace('K', key))),
                format!(
                    "NOTHELD owner 'uuid:1' does not hold '{key}' as a plain lock, it holds it \
                     for {mode}: say {mode}"
                )
            );
            let other = request.replace('K', key).replace("uuid:1", "uuid:9");
            let line = client.error(&format!("RLOCK.{other}"));
            assert!(line.ends_with("or never acquired"), "{line}");
        }
        assert_eq!(client.state(key.as_bytes()), before);
        assert_eq!(client.changes(), changes);
    }
}

#[test]
fn a_count_of_holds_does_not_overflow() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET job alice 9223372036854775807");
    client.int("PEXPIRE job 3600000");
    let (before, changes) = (client.state(b"job"), client.changes());
    assert_eq!(
        client.error("RLOCK.ACQUIRE job alice 1000"),
        "ERR owner 'alice' cannot nest any deeper on 'job': release a hold first"
    );
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.changes(), changes);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), i64::MAX - 1);
}

#[test]
fn names_are_escaped_in_an_error() {
    let mut test = Untouched::new();
    let name = b"a\0b\r\nc\xff'\"\\d\t\x7f \xc3\xa9";
    let shown = r#"'a\x00b\x0d\x0ac\xff\'"\\d\x09\x7f \xc3\xa9'"#;
    let line = format!(
        "NOTHELD owner {shown} does not hold {shown}: its lease ended, it was released, or never \
         acquired"
    );
    test.refuses(&[b"RLOCK.RELEASE".as_slice(), name, name], &line);
    test.refuses(&[b"RLOCK.RENEW".as_slice(), name, name, b"1000"], &line);
    let line =
        format!("ERR the lease must be a whole number of ms from 1 to {MOST_MS}, got {shown}");
    test.refuses(&[b"RLOCK.RENEW".as_slice(), b"job", b"alice", name], &line);
    let args: [&[u8]; 5] = [b"RLOCK.ACQUIRE", b"job", b"alice", b"1", name];
    let line = test.client.error(&args);
    let begin = format!("ERR syntax error at {shown}: ");
    assert!(line.starts_with(&begin), "{line}");
    let owner = [name.as_slice(), b":write"].concat();
    let line = test
        .client
        .error(&[b"RLOCK.RELEASE", b"job".as_slice(), &owner]);
    let end = format!("got {}:write'", shown.trim_end_matches('\''));
    assert!(line.ends_with(&end), "{line}");
}

#[test]
fn an_error_is_one_line_of_at_most_512_bytes() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    let mut setup = server.raw();
    let key = b"\r\n".repeat(50_000);
    let word = b"\xff\0".repeat(50_000);
    let owner = [0xff; 512];
    let reserved = [[0; 506].as_slice(), b":write"].concat();
    let held = [[b'\n'; 100].as_slice(), b"held"].concat();
    setup.ask(&[b"RLOCK.ACQUIRE", held.as_slice(), &owner, b"3600000"]);
    setup.ask(&[b"HSET", key.as_slice(), b"a", b"b"]);
    let changes = setup.changes();
    let requests: [&[&[u8]]; 11] = [
        &[b"RLOCK.RELEASE", &held, b"nobody"],
        &[b"RLOCK.RELEASE", &word, &owner],
        &[b"RLOCK.RENEW", &word, &owner, b"1"],
        &[b"RLOCK.RENEW", &word, &owner, &word],
        &[b"RLOCK.ACQUIRE", &word, &owner, &word],
        &[b"RLOCK.ACQUIRE", &word, &owner, b"1", b"BLOCK", &word],
        &[b"RLOCK.ACQUIRE", &word, &owner, b"1", &word],
        &[b"RLOCK.ACQUIRE", &word, &reserved, b"1"],
        &[b"RLOCK.ACQUIRE", &word, &word, b"1"],
        &[b"RLOCK.INFO", &key],
        &[b"RLOCK.FORCE", &key],
    ];
    for request in requests {
        let reply = wire.exact(request);
        let line = reply.strip_suffix(b"\r\n").expect("a line's end");
        let line = line.strip_prefix(b"-").expect("an error");
        assert!(line.len() <= 512, "{} bytes: {line:?}", line.len());
        assert!(
            line.iter().all(|byte| (b' '..=b'~').contains(byte)),
            "{line:?}"
        );
        assert!(line.is_ascii() && line.contains(&b' '), "{line:?}");
    }
    assert_eq!(setup.changes(), changes);
    server.alive();
}
