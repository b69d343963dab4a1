//! What is wrong in a request about permits is said, and changes nothing.

use crate::support::{user, Ask, Listener, RawClient, Server, Untouched, LONG};

const ACQUIRE: &str = "usage: RLOCK.ACQUIRE key owner lease [READ|WRITE|LIMIT n] [PERMITS k] \
                       [BLOCK ms|QUEUE ms] [NOTIFY channel tag] [WANTED] [WATCHDOG] \
                       [ONCE]";
const RELEASE: &str = "usage: RLOCK.RELEASE key owner [READ|WRITE|PERMITS [k]] [ALL] [IFHELD | \
                       IFTOKEN token]";

/// What is no number of permits.
const NUMBERS: [&str; 8] = ["0", "-1", "1000001", "1.5", "+1", "01", "x", "1e3"];

/// A server with permits of `gpu` held by `a`, 2 of 4, whose errors must leave no trace.
fn untouched(check: impl Fn(&mut RawClient)) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("gpu", "a", "LIMIT 4 PERMITS 2");
    let mut events = Listener::keyspace(&server, 0);
    let before = (client.state(b"gpu"), client.changes());
    check(&mut client);
    assert_eq!((client.state(b"gpu"), client.changes()), before);
    assert_eq!(client.int("DBSIZE"), 1);
    assert_eq!(events.events(), []);
    server.alive();
}

#[test]
fn limits_and_permits_are_numbers_from_1_to_a_million() {
    untouched(|client| {
        for bad in NUMBERS {
            let got = format!("to 1000000, got '{bad}'");
            for (words, word) in [
                (format!("LIMIT {bad}"), "LIMIT"),
                (format!("LIMIT 4 PERMITS {bad}"), "PERMITS"),
            ] {
                let line = client.error(&format!("RLOCK.ACQUIRE gpu b {LONG} {words}"));
                let expected = format!("ERR {word} must be a whole number from 1 {got}");
                assert_eq!(line, expected, "{words}");
            }
            let line = client.error(&format!("RLOCK.RELEASE gpu a PERMITS {bad}"));
            assert_eq!(
                line,
                format!("ERR PERMITS must be a whole number from 1 {got}")
            );
            let line = client.error(&format!("RLOCK.LIMIT gpu {bad}"));
            let expected = format!("ERR the limit must be a whole number from 1 {got}");
            assert_eq!(line, expected);
        }
    });
}

#[test]
fn the_least_and_the_most_can_be_said() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 1000000 PERMITS 1000000");
    assert!(client.refused("RLOCK.ACQUIRE k b 1000 LIMIT 1000000"));
    assert_eq!(client.give_back("k", "a", 1_000_000), 0);
    client.nothing_left("k");
    client.take_permits("k", "a", "limit 1 permits 1");
    assert_eq!(client.permits("k"), "a=1 mode=permits 1 1 1");
    assert_eq!(client.int("RLOCK.LIMIT k 1000000"), 1);
    assert_eq!(client.int("RLOCK.LIMIT k 1"), 1_000_000);
}

#[test]
fn permits_go_with_a_limit_and_are_no_more_than_that() {
    untouched(|client| {
        let needs = "ERR PERMITS needs LIMIT n: how many permits of this lock there are";
        for words in ["PERMITS 1", "READ PERMITS 2", "PERMITS 1 WRITE"] {
            let line = client.error(&format!("RLOCK.ACQUIRE gpu b {LONG} {words}"));
            assert_eq!(line, needs, "{words}");
        }
        for words in ["LIMIT 4 PERMITS 5", "PERMITS 5 LIMIT 4 BLOCK 0"] {
            let line = client.error(&format!("RLOCK.ACQUIRE gpu b {LONG} {words}"));
            let expected = "ERR PERMITS must be at most LIMIT, 4, got 5";
            assert_eq!(line, expected, "{words}");
        }
    });
}

#[test]
fn each_word_is_said_once_and_one_mode_at_most() {
    untouched(|client| {
        for (words, at) in [
            ("READ LIMIT 4", "LIMIT"),
            ("LIMIT 4 WRITE", "WRITE"),
            ("LIMIT 4 LIMIT 4", "LIMIT"),
            ("LIMIT 4 PERMITS 1 PERMITS 1", "PERMITS"),
            ("LIMIT 4 1", "1"),
            ("LIMIT 4 ALL", "ALL"),
        ] {
            let line = client.error(&format!("RLOCK.ACQUIRE gpu b {LONG} {words}"));
            let expected =
                format!("ERR syntax error at '{at}': each keyword once, none but these; {ACQUIRE}");
            assert_eq!(line, expected, "{words}");
        }
        for (words, word) in [("LIMIT", "LIMIT"), ("LIMIT 4 PERMITS", "PERMITS")] {
            let line = client.error(&format!("RLOCK.ACQUIRE gpu b {LONG} {words}"));
            let expected = format!("ERR syntax error: {word} needs a number; {ACQUIRE}");
            assert_eq!(line, expected);
        }
    });
}

#[test]
fn what_is_given_back_is_a_number_or_all() {
    untouched(|client| {
        let line = client.error("RLOCK.RELEASE gpu a PERMITS x");
        assert!(line.ends_with("got 'x'"), "{line}");
        for words in ["PERMITS 2 ALL", "ALL PERMITS 2"] {
            let line = client.error(&format!("RLOCK.RELEASE gpu a {words}"));
            let expected = "ERR ALL and a number of permits exclude each other";
            assert_eq!(line, expected, "{words}");
        }
        for (words, at) in [
            ("READ PERMITS", "PERMITS"),
            ("PERMITS WRITE", "WRITE"),
            ("PERMITS 1 PERMITS", "PERMITS"),
            ("PERMITS ALL ALL", "ALL"),
            ("LIMIT 4", "LIMIT"),
        ] {
            let line = client.error(&format!("RLOCK.RELEASE gpu a {words}"));
            let expected =
                format!("ERR syntax error at '{at}': each keyword once, none but these; {RELEASE}");
            assert_eq!(line, expected, "{words}");
        }
    });
}

#[test]
fn renew_and_cancel_take_the_word_without_a_number() {
    untouched(|client| {
        for (request, at) in [
            ("RLOCK.RENEW gpu a 1000 PERMITS 2", "2"),
            ("RLOCK.RENEW gpu a 1000 LIMIT 4", "LIMIT"),
            ("RLOCK.RENEW gpu a 1000 READ PERMITS", "PERMITS"),
            ("RLOCK.CANCEL gpu a PERMITS 2", "2"),
            ("RLOCK.CANCEL gpu a LIMIT 4", "LIMIT"),
            ("RLOCK.CANCEL gpu a PERMITS READ", "READ"),
        ] {
            let line = client.error(request);
            let expected = format!("ERR syntax error at '{at}': ");
            assert!(line.starts_with(&expected), "{request}: {line}");
        }
    });
}

#[test]
fn requests_for_many_keys_know_no_permits() {
    let mut job = Untouched::new();
    for request in [
        "RLOCK.MACQUIRE 2 job other b 1000 LIMIT 4",
        "RLOCK.MACQUIRE 1 job b 1000 PERMITS 1",
        "RLOCK.MRELEASE 1 job alice PERMITS",
        "RLOCK.MRENEW 1 job alice 1000 PERMITS",
    ] {
        let line = job.client.error(request);
        assert!(line.starts_with("ERR "), "{request}: {line}");
        assert!(line.contains("usage: "), "{request}: {line}");
    }
}

#[test]
fn the_limit_takes_a_key_and_a_number() {
    let mut job = Untouched::new();
    let usage = "ERR wrong number of arguments; usage: RLOCK.LIMIT key n";
    job.refuses("RLOCK.LIMIT job", usage);
    job.refuses("RLOCK.LIMIT job 4 5", usage);
    let other = "WRONGMODE 'job' is not held by permits, so it has no limit";
    job.refuses("RLOCK.LIMIT job 4", other);
    let free = "NOTHELD nobody holds permits of 'free': the limit comes with the next request";
    job.refuses("RLOCK.LIMIT free 4", free);
}

#[test]
fn a_user_changes_the_limits_of_its_own_keys_only() {
    let server = Server::start();
    let mut admin = server.raw();
    admin.take_permits("b", "x", "LIMIT 4");
    admin.take_permits("a:1", "x", "LIMIT 4");
    let before = admin.state(b"b");
    let mut worker = user(&server, "+@all ~a*");
    for request in [
        "RLOCK.LIMIT b 9",
        "RLOCK.ACQUIRE b w 1000 LIMIT 4",
        "RLOCK.RENEW b x 100000 PERMITS",
        "RLOCK.RELEASE b x PERMITS",
        "RLOCK.CANCEL b x PERMITS",
    ] {
        assert!(worker.denied(request), "{request}");
        let allowed = request.replace(" b ", " a:1 ");
        assert!(!worker.denied(&allowed), "{allowed}");
    }
    assert_eq!(admin.state(b"b"), before);
    if server.version().at_least(7, 2) {
        let mut careful = user(&server, "~* +@all -@dangerous");
        careful.take_permits("c", "w", "LIMIT 4");
        assert!(careful.denied("RLOCK.LIMIT c 9"));
        assert_eq!(careful.give_back("c", "w", 1), 0);
    }
}
