//! `rlock run` when all goes well, and when somebody else has the lock.

use std::process::Stdio;

use crate::server::{Server, until};
use crate::tool::{Notes, done, end, rlock, signal};

#[test]
fn the_command_has_the_lock_and_its_own_exit_code() {
    let server = Server::start();
    let script = "echo $RLOCK_KEY $RLOCK_TOKEN $RLOCK_OWNER; exit 7";
    let seen = done(&server, &["run", "jobs", "--", "sh", "-c", script]);
    assert_eq!((seen.code, seen.errors.as_str()), (7, ""));
    let words: Vec<&str> = seen.out.split_whitespace().collect();
    assert!(
        words[0] == "jobs" && words[1].parse::<u64>().unwrap() > 0 && words[2].contains(':'),
        "{words:?}"
    );
    assert!(server.is_free("jobs"));
    assert_eq!(
        done(&server, &["run", "jobs", "--", "sh", "-c", "kill -9 $$"]).code,
        137
    );
    assert_eq!(
        done(&server, &["run", "jobs", "--", "/no/such/command"]).code,
        127
    );
    assert_eq!(
        done(&server, &["run", "jobs", "--", "/etc/passwd"]).code,
        126
    );
    assert!(server.is_free("jobs"));
}

#[test]
fn not_acquired_unreachable_and_wrong_usage_have_codes_of_their_own() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    for wait in [&["run", "jobs"][..], &["run", "--wait", "100ms", "jobs"]] {
        let seen = done(&server, &[wait, &["--", "true"]].concat());
        assert_eq!(seen.code, 115, "{}", seen.errors);
        assert!(seen.errors.contains("somebody else"), "{}", seen.errors);
    }
    server.ask::<String>("SET text x");
    assert_eq!(done(&server, &["run", "text", "--", "true"]).code, 118);
    assert_eq!(
        done(&server, &["--url", "127.0.0.1:1", "run", "a", "--", "true"]).code,
        117
    );
    assert_eq!(done(&server, &["--url", "127.0.0.1:1", "ls"]).code, 117);
    for wrong in [
        &["run", "jobs"][..],
        &["run", "--wait", "10", "jobs", "--", "true"],
        &["run", "--lease", "10ms", "jobs", "--", "true"],
        &["run", "", "--", "true"],
        &["run", "--quorum", "a,,b", "jobs", "--", "true"],
        &[
            "run",
            "--quorum",
            "a,b,c",
            "--at-least",
            "1m",
            "jobs",
            "--",
            "true",
        ],
        &["who", ""],
        &["waiters", ""],
        &["watch", ""],
        &["force", "", "--yes"],
        &["force", "jobs", "--owner", "", "--yes"],
        &["ls", "--owner", ""],
        &["ls", "--match", ""],
        &["run", "--read", "--limit", "3", "jobs", "--", "true"],
        &["nothing"],
    ] {
        assert_eq!(done(&server, wrong).code, 125, "{wrong:?}");
    }
    assert_eq!(done(&server, &["--help"]).code, 0);
}

#[test]
fn it_waits_in_line_and_says_nothing_where_there_is_no_terminal() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let mut waits = rlock(
        &server,
        &["run", "--wait", "forever", "jobs", "--", "echo", "ran"],
    );
    let waits = waits
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(|| server.waiters("jobs") == 1);
    server.ask::<i64>("RLOCK.RELEASE jobs other");
    let seen = end(waits);
    assert_eq!(
        (seen.code, seen.out.as_str(), seen.errors.as_str()),
        (0, "ran\n", "")
    );
}

#[test]
fn a_signal_ends_the_wait_on_the_server_too() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let waits = rlock(&server, &["run", "--wait", "1h", "jobs", "--", "true"])
        .spawn()
        .unwrap();
    until(|| server.waiters("jobs") == 1);
    signal(&waits, libc::SIGTERM);
    assert_eq!(end(waits).code, 128 + libc::SIGTERM);
    until(|| server.waiters("jobs") == 0);
}

#[test]
fn readers_and_permits() {
    let server = Server::start();
    let notes = Notes::new();
    let hold = format!("echo $$ >> {}; exec sleep 60", notes.path("ids"));
    let hold = ["--", "sh", "-c", hold.as_str()];
    let started = |words: &[&str]| rlock(&server, &[words, &hold].concat()).spawn().unwrap();
    let reads = [
        started(&["run", "--read", "prices"]),
        started(&["run", "--read", "prices"]),
    ];
    let permits = [
        started(&["run", "--limit", "2", "gpu"]),
        started(&["run", "--limit", "2", "gpu"]),
    ];
    notes.ids("ids", 4);
    assert_eq!(done(&server, &["run", "prices", "--", "true"]).code, 115);
    assert_eq!(
        done(&server, &["run", "--limit", "2", "gpu", "--", "true"]).code,
        115
    );
    for child in reads.into_iter().chain(permits) {
        signal(&child, libc::SIGTERM);
        assert_eq!(end(child).code, 128 + libc::SIGTERM);
    }
    assert!(server.is_free("prices") && server.is_free("gpu"));
}

#[test]
fn the_lease_is_renewed_for_as_long_as_the_command_runs() {
    let server = Server::start();
    let seen = done(
        &server,
        &["run", "--lease", "4s", "jobs", "--", "sleep", "6"],
    );
    assert_eq!((seen.code, seen.errors.as_str()), (0, ""));
}

#[test]
fn signals_are_passed_on() {
    let server = Server::start();
    for (number, name) in [
        (libc::SIGTERM, "TERM"),
        (libc::SIGINT, "INT"),
        (libc::SIGHUP, "HUP"),
    ] {
        let notes = Notes::new();
        let script = format!(
            "trap 'echo had {name}; exit 3' {name}; echo $$ > {}; while :; do sleep 0.05; done",
            notes.path("ids")
        );
        let mut runs = rlock(&server, &["run", "jobs", "--", "sh", "-c", &script]);
        let runs = runs
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        notes.ids("ids", 1);
        signal(&runs, number);
        let seen = end(runs);
        assert_eq!(
            (seen.code, seen.out.trim()),
            (3, format!("had {name}").as_str())
        );
    }
    assert!(server.is_free("jobs"));
}

#[test]
fn standard_input_is_the_command_s() {
    let server = Server::start();
    let mut runs = rlock(&server, &["run", "jobs", "--", "cat"]);
    let mut runs = runs
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut runs.stdin.take().unwrap(), b"hello\n").unwrap();
    assert_eq!(end(runs).out, "hello\n");
}

#[test]
fn what_is_left_of_the_group_is_ended_with_the_command() {
    let server = Server::start();
    let notes = Notes::new();
    let script = format!(
        "sleep 600 & echo $! > {}; trap '' TERM; sleep 601 & echo $! >> {0}; exit 4",
        notes.path("ids")
    );
    let seen = rlock(&server, &["run", "jobs", "--", "sh", "-c", &script])
        .spawn()
        .unwrap();
    assert_eq!(end(seen).code, 4);
    for id in notes.ids("ids", 2) {
        until(|| !crate::tool::is_alive(id));
    }
    assert!(server.is_free("jobs"));
}

#[test]
fn by_quorum_with_one_server_away() {
    let mut servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses = servers
        .iter()
        .map(Server::address)
        .collect::<Vec<_>>()
        .join(",");
    let run = |words: &[&str]| {
        done(
            &servers[0],
            &[&["run", "--quorum", &addresses, "--lease", "6s"], words].concat(),
        )
    };
    let seen = run(&["jobs", "--", "sh", "-c", "sleep 8; exit 6"]);
    assert_eq!((seen.code, seen.errors.as_str()), (6, ""));
    assert!(servers.iter().all(|server| server.is_free("jobs")));
    let taken = |server: &Server| _ = server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    servers.iter().skip(1).for_each(taken); // so that a minority grants
    assert_eq!(run(&["jobs", "--", "true"]).code, 115);
    servers
        .iter()
        .for_each(|server| _ = server.ask::<i64>("DEL jobs"));
    drop(servers.remove(2));
    let run = |words: &[&str]| {
        done(
            &servers[0],
            &[&["run", "--quorum", &addresses], words].concat(),
        )
    };
    assert_eq!(run(&["jobs", "--", "true"]).code, 0);
    drop(servers.remove(1));
    let run = |words: &[&str]| {
        done(
            &servers[0],
            &[&["run", "--quorum", &addresses], words].concat(),
        )
    };
    assert_eq!(run(&["jobs", "--", "true"]).code, 117);
}

#[test]
fn a_release_that_is_refused_is_said() {
    let server = Server::start();
    server.ask::<()>("ACL SETUSER bob on >secret ~* &* +@all -rlock.release");
    let url = format!("redis://bob:secret@127.0.0.1:{}/", server.port);
    let seen = done(&server, &["run", "--url", &url, "jobs", "--", "true"]);
    assert_eq!(seen.code, 0, "{}", seen.errors);
    let kept = "the lock is kept for its lease: the server refused: NOPERM";
    assert!(seen.errors.contains(kept), "{}", seen.errors);
}
