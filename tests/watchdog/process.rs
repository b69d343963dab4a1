//! Processes that hold with WATCHDOG and are killed, or stopped: the lock is theirs
//! as long as their connection is.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use redis::Value;

use crate::support::locks::{now_ms, pass, Say, Waiter};
use crate::support::look::{goes_free, held_by, only};
use crate::support::{encode, eventually, signal, spawn, Server};

const ADDRESS: &str = "RLOCK_TEST_HOLDER_ADDRESS";
const REQUEST: &str = "RLOCK_TEST_HOLDER_REQUEST";

/// What the holder's process runs: one request, and then nothing at all.
#[test]
#[ignore = "other tests run it, in a process of its own"]
fn the_process_that_holds() {
    let (Ok(address), Ok(request)) = (env::var(ADDRESS), env::var(REQUEST)) else {
        return;
    };
    let mut stream = TcpStream::connect(address).expect("connect");
    let words: Vec<_> = request.split_whitespace().collect();
    stream.write_all(&encode(&words)).expect("the server reads");
    // The reply, and then until the server closes.
    let mut byte = [0];
    while matches!(stream.read(&mut byte), Ok(1)) {}
}

/// This program again, as a process that holds: started by `wrapper`, if any.
pub fn holding_process(wrapper: &[&str], address: &str, request: &str) -> Child {
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
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    spawn(command).expect("a process")
}

/// A process that holds `key` as `a`, killed at the end of the test.
struct Process(Child);

impl Process {
    #[track_caller]
    fn holding(server: &Server, key: &str, lease: i64) -> Self {
        let address = format!("127.0.0.1:{}", server.port());
        let request = format!("RLOCK.ACQUIRE {key} a {lease} WATCHDOG");
        let process = Self(holding_process(&[], &address, &request));
        let mut control = server.raw();
        eventually("the process holds the lock", || {
            held_by(&mut control, key) == "a exclusive 1"
        });
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_is_killed_hands_its_lock_to_the_next() {
    let server = Server::start();
    let mut control = server.raw();
    for how in [libc::SIGKILL, libc::SIGTERM, libc::SIGABRT] {
        let mut process = Process::holding(&server, "k", 100_000);
        let mut next = Waiter::new(&server, "k", "b");
        signal(&process.0, how);
        process.0.wait().expect("it ends");
        next.token();
        assert_eq!(held_by(&mut control, "k"), "b exclusive 1", "{how}");
        next.client.close();
        assert_eq!(control.say("RLOCK.RELEASE k b"), Value::Int(0));
    }
}

#[test]
fn a_process_that_is_killed_leaves_the_lock_free() {
    let server = Server::start();
    let mut process = Process::holding(&server, "k", 100_000);
    signal(&process.0, libc::SIGKILL);
    process.0.wait().expect("it ends");
    goes_free(&mut server.raw(), "k");
}

#[test]
fn a_process_that_stands_still_keeps_its_lock() {
    // No timer of its own renews anything: the server does.
    let server = Server::start();
    let mut control = server.raw();
    let process = Process::holding(&server, "k", 300);
    let token = only(&mut control, "k").token;
    signal(&process.0, libc::SIGSTOP);
    pass(now_ms() + 2000);
    let hold = only(&mut control, "k");
    assert_eq!((hold.owner.as_str(), hold.token), ("a", token));
    assert!(hold.watchdog.is_some());
    // Killed, it is gone as ever.
    signal(&process.0, libc::SIGKILL);
    goes_free(&mut control, "k");
}
