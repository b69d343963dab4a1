//! Conditions of RELEASE and FORCE that are refused.

use crate::support::{Ask, Untouched};

const MOST: i64 = (1 << 53) - 1;

#[test]
fn a_token_is_a_whole_number_from_1() {
    let mut test = Untouched::new();
    let too_much = (MOST + 1).to_string();
    let bad = [
        "0", "-1", "01", "+5", "1.5", "", " 5", "x", "ALL", &too_much,
    ];
    for token in bad {
        let line = format!("ERR the token must be a whole number from 1 to {MOST}, got '{token}'");
        for owner in ["alice", "bob"] {
            let release = ["RLOCK.RELEASE", "job", owner, "IFTOKEN", token].map(str::as_bytes);
            test.refuses(&release, &line);
        }
        let force = ["RLOCK.FORCE", "job", "IFTOKEN", token].map(str::as_bytes);
        test.refuses(&force, &line);
    }
    assert_eq!(
        test.client.int(&format!("RLOCK.FORCE job IFTOKEN {MOST}")),
        0
    );
    for request in ["RLOCK.RELEASE job alice IFTOKEN", "RLOCK.FORCE job IFTOKEN"] {
        let line = test.client.error(request);
        let begin = "ERR syntax error: IFTOKEN needs a token; usage: RLOCK.";
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn there_is_one_condition() {
    let mut test = Untouched::new();
    for (request, word, usage) in [
        (
            "RLOCK.RELEASE job alice IFHELD IFTOKEN 5",
            "IFTOKEN",
            "RELEASE",
        ),
        (
            "RLOCK.RELEASE job alice IFTOKEN 5 IFHELD",
            "IFHELD",
            "RELEASE",
        ),
        (
            "RLOCK.RELEASE job alice IFTOKEN 5 IFTOKEN 5",
            "IFTOKEN",
            "RELEASE",
        ),
        ("RLOCK.RELEASE job alice IFHELD ifheld", "ifheld", "RELEASE"),
        (
            "RLOCK.RELEASE job alice IFOWNER alice",
            "IFOWNER",
            "RELEASE",
        ),
        (
            "RLOCK.FORCE job IFOWNER alice IFTOKEN 5",
            "IFTOKEN",
            "FORCE",
        ),
        (
            "RLOCK.FORCE job IFTOKEN 5 IFOWNER alice",
            "IFOWNER",
            "FORCE",
        ),
        ("RLOCK.FORCE job IFHELD", "IFHELD", "FORCE"),
        ("RLOCK.FORCE job other", "other", "FORCE"),
        ("RLOCK.ACQUIRE job alice 1000 IFHELD", "IFHELD", "ACQUIRE"),
        ("RLOCK.RENEW job alice 1000 IFTOKEN 5", "IFTOKEN", "RENEW"),
    ] {
        let line = test.client.error(request);
        let begin = format!(
            "ERR syntax error at '{word}': each keyword once, none but these; usage: RLOCK.{usage} "
        );
        assert!(line.starts_with(&begin), "{request}: {line}");
    }
    for (request, begin) in [
        (
            "RLOCK.FORCE job IFOWNER",
            "ERR wrong number of arguments; usage: RLOCK.FORCE key [",
        ),
        (
            "RLOCK.FORCE job IFOWNER mode",
            "ERR the owner must not be 'mode'",
        ),
        (
            "RLOCK.MRELEASE 1 job alice IFHELD",
            "ERR syntax error at 'IFHELD'",
        ),
    ] {
        let line = test.client.error(request);
        assert!(line.starts_with(begin), "{request}: {line}");
    }
    // In a script there is no connection to be meant.
    let script = "return redis.pcall('RLOCK.FORCE', KEYS[1], 'IFOWNER', '*').err";
    let line = test.client.text(&["EVAL", script, "1", "job"]);
    assert!(line.starts_with("ERR owner * means a connection"), "{line}");
}
