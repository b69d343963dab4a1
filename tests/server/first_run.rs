//! What somebody sees who tries rlock for the first time.

use std::env;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use crate::support::{eventually, spawn, wait_for, Server};

/// A server that `make run` starts, ended with the test.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
    let _run = Run(spawn(command).expect("it starts"));
    let said = || fs::read_to_string(&log).expect("a log");
    eventually("it says that it is ready", || {
        said().contains(&format!("rlock is ready on port {port}"))
    });

    let client = redis::Client::open(("127.0.0.1", port)).expect("an address");
    let mut connection = wait_for("a connection", || client.get_connection().ok());
    let mut say = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let reply: i64 = redis::cmd(words[0])
            .arg(&words[1..])
            .query(&mut connection)
            .expect(line);
        reply
    };
    say("RLOCK.ACQUIRE k a 60000 WATCHDOG");
    say("RLOCK.ACQUIRE doc a 60000 READ BLOCK 0");
    assert_eq!(say("RLOCK.RELEASE k a"), 0);
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
