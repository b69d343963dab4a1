//! Processes that hold with WATCHDOG and are killed, or stopped: the lock is theirs
//! as long as their connection is.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::support::{now_ms, pass, signal, spawn, Ask, Process, Request, Server, Waiter};

const ADDRESS: &str = "RLOCK_TEST_HOLDER_ADDRESS";
const REQUEST: &str = "RLOCK_TEST_HOLDER_REQUEST";
/// What it sends ten times a second, if anything.
const BEAT: &str = "RLOCK_TEST_HOLDER_BEAT";

/// What the holder's process runs: one request, and then nothing at all, or heartbeats.
#[test]
#[ignore = "other tests run it, in a process of its own"]
fn the_process_that_holds() {
    let (Ok(address), Ok(request)) = (env::var(ADDRESS), env::var(REQUEST)) else {
        return;
    };
    let mut stream = TcpStream::connect(address).expect("connect");
    stream
        .write_all(&request.encoded())
        .expect("the server reads");
    if let Ok(beat) = env::var(BEAT) {
        while stream.write_all(&beat.encoded()).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    // The reply, and then until the server closes.
    let mut byte = [0];
    while matches!(stream.read(&mut byte), Ok(1)) {}
}

/// This program again, as a process that holds: started by `wrapper`, if any.
pub fn holding_process(wrapper: &[&str], address: &str, request: &str) -> Process {
    holder(wrapper, address, request, None)
}

/// One that sends this ten times a second then.
pub fn beating_process(address: &str, request: &str, beat: &str) -> Process {
    holder(&[], address, request, Some(beat))
}

fn holder(wrapper: &[&str], address: &str, request: &str, beat: Option<&str>) -> Process {
    let this = env::current_exe().expect("this program");
    let mut command = match wrapper {
        [] => Command::new(&this),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(&this);
            command
        }
    };
    command
        .args(["watchdog::process::the_process_that_holds", "--exact"])
        .args(["--ignored", "--nocapture"])
        .env(ADDRESS, address)
        .env(REQUEST, request)
        .envs(beat.map(|beat| (BEAT, beat)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Process(spawn(command).expect("a process"))
}

/// A process that holds `key` as `a`.
#[track_caller]
fn holding(server: &Server, key: &str, lease: i64) -> Process {
    let address = format!("127.0.0.1:{}", server.port());
    let request = format!("RLOCK.ACQUIRE {key} a {lease} WATCHDOG");
    let process = holding_process(&[], &address, &request);
    server.raw().goes_to(key, "a exclusive 1");
    process
}

#[test]
fn a_process_that_is_killed_hands_its_lock_to_the_next() {
    let server = Server::start();
    let mut control = server.raw();
    for how in [libc::SIGKILL, libc::SIGTERM, libc::SIGABRT] {
        let mut process = holding(&server, "k", 100_000);
        let mut next = Waiter::new(&server, "k", "b");
        signal(&process.0, how);
        process.0.wait().expect("it ends");
        next.token();
        assert_eq!(control.held_by("k"), "b exclusive 1", "{how}");
        next.client.close();
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
    }
}

#[test]
fn a_process_that_is_killed_leaves_the_lock_free() {
    let server = Server::start();
    let mut process = holding(&server, "k", 100_000);
    signal(&process.0, libc::SIGKILL);
    process.0.wait().expect("it ends");
    server.raw().goes_free("k");
}

#[test]
fn a_process_that_stands_still_keeps_its_lock() {
    // No timer of its own renews anything: the server does.
    let server = Server::start();
    let mut control = server.raw();
    let process = holding(&server, "k", 300);
    let token = control.only("k").token;
    signal(&process.0, libc::SIGSTOP);
    pass(now_ms() + 2000);
    let hold = control.only("k");
    assert_eq!((hold.owner.as_str(), hold.token), ("a", token));
    assert!(hold.watchdog.is_some());
    // Killed, it is gone as ever.
    signal(&process.0, libc::SIGKILL);
    control.goes_free("k");
}
