//! What somebody sees who tries rlock for the first time.

use std::env;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::support::{eventually, spawn, wait_for, Ask, Process, RawClient, Server};

#[test]
fn make_run_starts_a_server_that_rlock_has_nothing_to_say_against() {
    // For a directory, and a port that nobody else takes.
    let beside = Server::start();
    let port = beside.port() + 10_000;
    let dir = beside.dir().join("run");
    let log = beside.dir().join("run.log");
    let root = env!("CARGO_MANIFEST_DIR");
    let mut command = Command::new(format!("{root}/build-support/run-server"));
    command
        .arg(port.to_string())
        .arg(&dir)
        .stdin(Stdio::null())
        .stdout(File::create(&log).expect("a log"))
        .stderr(Stdio::null());
    let _run = Process(spawn(command).expect("it starts"));
    let said = || fs::read_to_string(&log).expect("a log");
    eventually("it says that it is ready", || {
        said().contains(&format!("rlock is ready on port {port}"))
    });

    let mut client = wait_for("a connection", || RawClient::to(port).ok());
    client.int("RLOCK.ACQUIRE k a 60000 WATCHDOG");
    client.int("RLOCK.ACQUIRE doc a 60000 READ BLOCK 0");
    assert_eq!(client.int("RLOCK.RELEASE k a"), 0);
    for setting in ["timeout", "tcp-keepalive", "maxmemory-policy"] {
        let complaint = format!("rlock: {setting} is");
        assert!(!said().contains(&complaint), "{}", said());
    }
    let warnings = said()
        .lines()
        .filter(|line| line.contains("rlock: "))
        .count();
    assert_eq!(warnings, 0, "{}", said());
}
