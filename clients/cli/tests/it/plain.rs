//! A server without the module.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::ports::free_port;
use crate::server::{Server, until};
use crate::tool::{done, end, rlock, signal};

fn plain() -> Server {
    Server::bare(free_port(), &[])
}

#[test]
fn a_command_under_a_lock_waits_for_another() {
    let server = plain();
    let held = rlock(&server, &["run", "jobs", "--", "sleep", "60"])
        .spawn()
        .unwrap();
    until(|| !server.is_free("jobs"));
    assert_eq!(done(&server, &["run", "jobs", "--", "true"]).code, 115);
    let token = [
        "run",
        "--wait=60s",
        "jobs",
        "--",
        "sh",
        "-c",
        "echo $RLOCK_TOKEN",
    ];
    let mut waits = rlock(&server, &token);
    let waits = waits
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(|| server.ask::<i64>("EXISTS rlock1_places:{jobs}") == 1);
    signal(&held, libc::SIGTERM);
    assert_eq!(end(held).code, 128 + libc::SIGTERM);
    let waited = end(waits);
    let is_token = waited.out.trim().parse::<u64>().is_ok();
    assert!(waited.code == 0 && is_token, "{}", waited.errors);
    assert!(server.is_free("jobs"));
    for words in [
        ["run", "--read", "rw", "--", "true"],
        ["run", "--limit=2", "gpu", "--", "true"],
    ] {
        assert_eq!(done(&server, &words).code, 0);
    }
}

#[test]
fn a_lock_that_is_freed_ends_the_command() {
    let server = plain();
    let words = ["run", "--lease", "6s", "jobs", "--", "sleep", "60"];
    let run = rlock(&server, &words)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(|| !server.is_free("jobs"));
    let who = done(&server, &["who", "jobs", "--json"]);
    let who: serde_json::Value = serde_json::from_str(&who.out).unwrap();
    assert_eq!(who["holders"][0]["mode"], "exclusive");
    assert!(who["waiters"].is_null());
    assert_eq!(
        done(&server, &["force", "jobs", "--yes", "--owner", "x"]).code,
        1
    );
    assert_eq!(done(&server, &["force", "jobs", "--yes"]).code, 0);
    let run = end(run);
    assert!(
        run.code == 116 && run.errors.contains("deleted"),
        "{}",
        run.errors
    );
    assert_eq!(done(&server, &["who", "jobs"]).code, 1);
}

#[test]
fn what_needs_the_module_says_so() {
    let server = plain();
    let tasks: [&[&str]; 5] = [
        &["ls"],
        &["waiters", "jobs"],
        &["top"],
        &["force", "jobs", "--token", "7", "--yes"],
        &["--backend", "module", "who", "jobs"],
    ];
    for task in tasks {
        let end = done(&server, task);
        assert!(
            end.code == 118 && end.errors.contains("no rlock module"),
            "{task:?} {}",
            end.errors
        );
        assert!(
            task[0].starts_with("--") || end.errors.contains(task[0]),
            "{}",
            end.errors
        );
    }
    let run = [
        "--backend=module",
        "run",
        "--wait=forever",
        "jobs",
        "--",
        "true",
    ];
    let run = done(&server, &run);
    assert!(
        run.code == 118 && run.errors.contains("no rlock module"),
        "{}",
        run.errors
    );
}

#[test]
fn watch_looks_and_outlasts_a_flush_of_the_functions() {
    let server = plain();
    let mut watch = rlock(&server, &["watch", "jobs"]);
    let mut watch = watch
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().ends_with("free"));
    server.ask::<()>("FUNCTION FLUSH");
    assert_eq!(
        done(&server, &["run", "jobs", "--", "sleep", "0.5"]).code,
        0
    );
    assert!(next().contains("acquired") && next().contains("gone"));
    watch.kill().unwrap();
    watch.wait().unwrap();
    let mut said = String::new();
    watch
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(said.contains("ten times a second"), "{said}");
}

#[test]
fn by_quorum() {
    let servers = [plain(), plain(), plain()];
    let all = servers.each_ref().map(Server::address).join(",");
    let run = done(
        &servers[0],
        &["run", "--quorum", &all, "jobs", "--", "sleep", "0.2"],
    );
    assert_eq!(run.code, 0, "{}", run.errors);
    assert!(servers.iter().all(|server| server.is_free("jobs")));
    let required = [
        "--backend=module",
        "run",
        "--quorum",
        &all,
        "jobs",
        "--",
        "true",
    ];
    assert_eq!(done(&servers[0], &required).code, 118);
}
