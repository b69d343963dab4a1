//! Settings of the server that do not go well with WATCHDOG are warned of in its log.

use crate::support::{eventually, now_ms, pass, Ask, Bound, Server};

/// How many lines of rlock's in the log speak of this.
fn warnings(server: &Server, of: &str) -> usize {
    let log = server.log();
    let ours = |line: &&str| line.contains("rlock") && line.contains(of);
    // What the server says of its start names the module too.
    let loading = |line: &&str| line.contains("Module") || line.contains("loadmodule");
    log.lines()
        .filter(|line| ours(line) && !loading(line))
        .count()
}

#[track_caller]
fn warned(server: &Server, of: &str, times: usize) {
    eventually(&format!("{times} warnings of {of}"), || {
        warnings(server, of) == times
    });
}

const GOOD: [&str; 4] = ["--timeout", "0", "--tcp-keepalive", "10"];

#[test]
fn good_settings_are_not_warned_of() {
    let server = Server::start_with(&GOOD);
    let mut control = server.raw();
    let _held = Bound::new(&server, "k", "a");
    for good in ["tcp-keepalive 30", "tcp-keepalive 1", "timeout 0"] {
        control.ok(&format!("CONFIG SET {good}"));
    }
    pass(now_ms() + 200);
    assert_eq!(warnings(&server, "tcp-keepalive"), 0, "{}", server.log());
    assert_eq!(warnings(&server, "timeout"), 0, "{}", server.log());
}

#[test]
fn a_keepalive_that_is_off_or_slow_is_warned_of_at_the_first_use() {
    for value in ["0", "31", "300"] {
        let options = [&GOOD[..2], &["--tcp-keepalive", value]].concat();
        let server = Server::start_with(&options);
        let mut control = server.raw();
        control.token("RLOCK.ACQUIRE plain a 100000");
        assert_eq!(warnings(&server, "tcp-keepalive"), 0, "no use yet");
        let _one = Bound::new(&server, "k", "a");
        warned(&server, "tcp-keepalive", 1);
        // Once is enough.
        let _two = Bound::new(&server, "other", "a");
        pass(now_ms() + 200);
        assert_eq!(warnings(&server, "tcp-keepalive"), 1, "{}", server.log());
    }
}

#[test]
fn a_timeout_is_warned_of_at_the_first_use() {
    let options = [&["--timeout", "3600"], &GOOD[2..]].concat();
    let server = Server::start_with(&options);
    assert_eq!(warnings(&server, "timeout"), 0, "no use yet");
    let _held = Bound::new(&server, "k", "a");
    warned(&server, "timeout", 1);
}

#[test]
fn the_first_use_may_be_any_that_binds() {
    for (before, request) in [
        ("PING", "RLOCK.MACQUIRE 2 k l a 100000 WATCHDOG"),
        (
            "RLOCK.ACQUIRE k a 100000",
            "RLOCK.RENEW k a 100000 WATCHDOG",
        ),
        ("PING", "RLOCK.ACQUIRE k a 100000 READ WATCHDOG"),
    ] {
        let server = Server::start_with(&["--tcp-keepalive", "0"]);
        let mut client = server.raw();
        client.ask(before);
        client.ask(request);
        warned(&server, "tcp-keepalive", 1);
    }
}

#[test]
fn a_change_for_the_worse_is_warned_of() {
    let server = Server::start_with(&GOOD);
    let mut control = server.raw();
    let _held = Bound::new(&server, "k", "a");
    control.ok("CONFIG SET tcp-keepalive 0");
    warned(&server, "tcp-keepalive", 1);
    control.ok("CONFIG SET tcp-keepalive 10");
    control.ok("CONFIG SET tcp-keepalive 60");
    warned(&server, "tcp-keepalive", 2);
    control.ok("CONFIG SET tcp-keepalive 10");
    let before = warnings(&server, "timeout");
    control.ok("CONFIG SET timeout 3600");
    eventually("the time-out is warned of", || {
        warnings(&server, "timeout") > before
    });
}
