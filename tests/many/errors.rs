//! Requests for many keys that are refused for their arguments: nothing changes.

use crate::support::{Ask, Untouched, Wire};

/// Each command, with its arguments before and behind the keys.
const COMMANDS: [(&str, &str); 3] = [
    ("RLOCK.MACQUIRE", "alice 1000"),
    ("RLOCK.MRELEASE", "alice"),
    ("RLOCK.MRENEW", "alice 1000"),
];

#[test]
fn the_number_of_keys_is_a_whole_number_from_1_to_1024() {
    let mut test = Untouched::new();
    for numkeys in [
        "0",
        "-1",
        "1025",
        "1.5",
        "ten",
        "+1",
        "01",
        "0x1",
        "1e0",
        "9223372036854775808",
        "99999999999999999999999999",
    ] {
        for (command, rest) in COMMANDS {
            let line = test
                .client
                .error(&format!("{command} {numkeys} job {rest}"));
            assert!(line.starts_with("ERR "), "{command} {numkeys}: {line}");
            assert!(line.contains("numkeys"), "{command} {numkeys}: {line}");
            assert!(line.contains("1024"), "{command} {numkeys}: {line}");
        }
    }
    for args in [["", "job", "alice", "1000"], [" 1", "job", "alice", "1000"]] {
        let line = test
            .client
            .error(&[&["RLOCK.MACQUIRE"], &args[..]].concat());
        assert!(
            line.starts_with("ERR ") && line.contains("numkeys"),
            "{line}"
        );
    }
}

#[test]
fn more_than_1024_keys_are_refused() {
    let mut test = Untouched::new();
    let keys: Vec<String> = (0..1025).map(|n| format!("k{n}")).collect();
    for (command, rest) in COMMANDS {
        let request = format!("{command} 1025 {} {rest}", keys.join(" "));
        let line = test.client.error(&request);
        assert!(line.starts_with("ERR ") && line.contains("1024"), "{line}");
    }
}

#[test]
fn a_key_twice_is_refused() {
    let mut test = Untouched::new();
    for (command, rest) in COMMANDS {
        for keys in ["2 job job", "3 job x job", "3 x x job", "4 a b c b"] {
            let line = test.client.error(&format!("{command} {keys} {rest}"));
            assert!(line.starts_with("ERR "), "{command} {keys}: {line}");
            assert!(
                !line.contains("unknown command"),
                "{command} {keys}: {line}"
            );
        }
    }
}

#[test]
fn arguments_are_not_missing() {
    let mut test = Untouched::new();
    for request in [
        "RLOCK.MACQUIRE",
        "RLOCK.MACQUIRE 1",
        "RLOCK.MACQUIRE 1 job",
        "RLOCK.MACQUIRE 1 job alice",
        "RLOCK.MACQUIRE 2 job alice 1000",
        "RLOCK.MACQUIRE 3 job x alice 1000",
        "RLOCK.MACQUIRE 1024 job x alice 1000",
        "RLOCK.MRELEASE",
        "RLOCK.MRELEASE 1",
        "RLOCK.MRELEASE 1 job",
        "RLOCK.MRELEASE 2 job alice",
        "RLOCK.MRELEASE 1024 job alice",
        "RLOCK.MRENEW",
        "RLOCK.MRENEW 1",
        "RLOCK.MRENEW 1 job",
        "RLOCK.MRENEW 1 job alice",
        "RLOCK.MRENEW 2 job alice 1000",
    ] {
        let line = test.client.error(request);
        let begin = "ERR wrong number of arguments";
        assert!(line.starts_with(begin), "{request}: {line}");
    }
}

#[test]
fn a_keyword_comes_once_and_is_one_of_those_allowed() {
    let mut test = Untouched::new();
    for (words, at) in [
        ("READ", "READ"),
        ("WRITE", "WRITE"),
        ("read", "read"),
        ("BLOCK 0 WRITE", "WRITE"),
        ("ALL", "ALL"),
        ("NX", "NX"),
        ("5", "5"),
        ("ONCE ONCE", "ONCE"),
        ("BLOCK 5 block 5", "block"),
    ] {
        let line = test
            .client
            .error(&format!("RLOCK.MACQUIRE 2 x y bob 1000 {words}"));
        let begin = format!("ERR syntax error at '{at}'");
        assert!(line.starts_with(&begin), "{words}: {line}");
    }
    let line = test.client.error("RLOCK.MACQUIRE 2 x y bob 1000 BLOCK");
    assert!(line.starts_with("ERR syntax error"), "{line}");
    for request in [
        "RLOCK.MRELEASE 1 job alice ALL",
        "RLOCK.MRELEASE 1 job alice READ",
        "RLOCK.MRELEASE 1 job alice 5",
        "RLOCK.MRENEW 1 job alice 1000 READ",
        "RLOCK.MRENEW 1 job alice 1000 ONCE",
        "RLOCK.MRENEW 1 job alice 1000 BLOCK 5",
    ] {
        let line = test.client.error(request);
        assert!(line.starts_with("ERR "), "{request}: {line}");
    }
}

#[test]
fn numbers_and_owners_are_as_in_acquire() {
    let mut test = Untouched::new();
    for lease in ["0", "-1", "ten", "9007199254740992", "1.5", "05"] {
        for command in ["RLOCK.MACQUIRE", "RLOCK.MRENEW"] {
            let line = test
                .client
                .error(&format!("{command} 2 job x alice {lease}"));
            let begin = "ERR the lease must be a whole number of ms";
            assert!(line.starts_with(begin), "{command} {lease}: {line}");
        }
    }
    for ms in ["-1", "soon", "9007199254740992", "0.5"] {
        let line = test
            .client
            .error(&format!("RLOCK.MACQUIRE 2 job x bob 1000 BLOCK {ms}"));
        let begin = "ERR BLOCK must be a whole number of ms";
        assert!(line.starts_with(begin), "{ms}: {line}");
    }
    let long = "x".repeat(513);
    for owner in ["mode", "alice:write", ":write", &long] {
        for (command, rest) in COMMANDS {
            let rest = rest.replace("alice", owner);
            let line = test.client.error(&format!("{command} 2 job x {rest}"));
            assert!(line.starts_with("ERR the owner must "), "{command}: {line}");
        }
    }
}

#[test]
fn an_error_is_one_line_of_at_most_512_bytes() {
    let mut test = Untouched::new();
    let mut wire = Wire::connect(&test.server);
    let key = b"\r\n".repeat(50_000);
    let owner = [0xff; 512];
    let requests: [&[&[u8]]; 5] = [
        &[b"RLOCK.MACQUIRE", b"2", &key, &key, &owner, b"1000"],
        &[b"RLOCK.MACQUIRE", &key, &key, &owner, b"1000"],
        &[b"RLOCK.MACQUIRE", b"1", &key, &owner, &key],
        &[b"RLOCK.MACQUIRE", b"1", &key, &owner, b"1000", &key],
        &[b"RLOCK.MRENEW", b"1", &key, &owner, b"1000"],
    ];
    for request in requests {
        let reply = wire.exact(request);
        let line = reply.strip_suffix(b"\r\n").expect("a line's end");
        let line = line.strip_prefix(b"-").expect("an error");
        assert!(line.len() <= 512, "{} bytes", line.len());
        assert!(!line.starts_with(b"ERR unknown command"), "{line:?}");
        let printable = line.iter().all(|byte| (b' '..=b'~').contains(byte));
        assert!(printable, "{line:?}");
    }
    assert_eq!(test.client.int("EXISTS x"), 0);
}
