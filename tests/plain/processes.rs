//! Fifty processes count in one file, each under the lock, and some are killed.

use std::env;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use redis::Value;

use crate::support::{eventually_within, Ask, RawClient, Server, BOUND};

const WORKERS: usize = 50;
const TIMES: i64 = 200;

/// Longer than a machine that is busy stands still, for whoever outlives its lease
/// loses counts; short enough to wait for it when its holder was killed.
const LEASE_MS: u32 = 3000;

/// More than the minute that each waits at most.
const PATIENCE: Duration = Duration::from_secs(70);

/// So many kill themselves while they hold the lock ...
const DIE_HOLDING: usize = 3;

/// ... and so many are killed whatever they do, which is to wait, most of the time.
const KILLED: usize = 8;

/// Set for workers: the server's port, the worker's number, the directory.
const WORKER: &str = "RLOCK_TEST_WORKER";

/// A number in a file. It is written in one piece: a kill does not tear it.
struct Number(File);

impl Number {
    fn open(dir: &Path, name: &str) -> Self {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        Self(options.open(dir.join(name)).expect("a file"))
    }

    fn get(&self) -> i64 {
        let mut text = [0; 20];
        match self.0.read_at(&mut text, 0).expect("read") {
            0 => 0,
            _ => String::from_utf8_lossy(&text).parse().expect("a number"),
        }
    }

    fn set(&self, number: i64) {
        let text = format!("{number:020}");
        let written = self.0.write_at(text.as_bytes(), 0).expect("write");
        assert_eq!(written, text.len());
    }
}

/// One worker: counts, under the lock. It runs in a process of its own, which is
/// this program with the name of this test.
#[test]
fn worker() {
    let Ok(order) = env::var(WORKER) else {
        return;
    };
    let mut parts = order.splitn(3, ' ');
    let mut next = || parts.next().expect("port number directory");
    let (port, number, dir) = (next(), next(), Path::new(next()));
    let port: u16 = port.parse().expect("a port");
    let dies = number.parse::<usize>().expect("a number") < DIE_HOLDING;
    let shared = Number::open(dir, "count");
    let own = Number::open(dir, number);
    let mut client = RawClient::to(port).expect("connect");
    for time in 0..TIMES {
        let owner = format!("{number}-{time}");
        let acquire = format!("RLOCK.ACQUIRE count {owner} {LEASE_MS} BLOCK 60000 ONCE");
        client.send(&acquire);
        let granted = client.read_within(PATIENCE);
        assert!(
            matches!(granted, Some(Value::Int(_))),
            "a minute was not enough: {granted:?}"
        );
        if dies && time == TIMES / 4 {
            // SAFETY: nothing is left to be unsafe.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        shared.set(shared.get() + 1);
        own.set(time + 1);
        let left = client.int(&format!("RLOCK.RELEASE count {owner}"));
        assert_eq!(left, 0, "the lease was lost");
    }
}

fn start_worker(server: &Server, number: usize) -> Child {
    let dir = server.dir().display();
    Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "plain::processes::worker"])
        .env(WORKER, format!("{} {number} {dir}", server.port()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a worker")
}

#[test]
fn no_count_is_lost_among_processes_that_are_killed() {
    let server = Server::start();
    let dir = server.dir();
    let shared = Number::open(dir, "count");
    let mut workers: Vec<Child> = (0..WORKERS).map(|n| start_worker(&server, n)).collect();
    // One after the other, while the others go on counting.
    for (nth, killed) in workers[DIE_HOLDING..][..KILLED].iter_mut().enumerate() {
        let progress = 300 * (nth as i64 + 1);
        eventually_within(3 * BOUND, "they count", || shared.get() >= progress);
        killed.kill().expect("kill");
        killed.wait().expect("wait");
    }
    let survivors = DIE_HOLDING + KILLED;
    thread::scope(|scope| {
        for (number, worker) in workers.iter_mut().enumerate() {
            scope.spawn(move || {
                let status = worker.wait().expect("wait");
                assert_eq!(status.success(), number >= survivors, "{number}: {status}");
            });
        }
    });

    let counts: Vec<i64> = (0..WORKERS)
        .map(|n| Number::open(dir, &n.to_string()).get())
        .collect();
    assert!(counts[survivors..].iter().all(|count| *count == TIMES));
    assert!(counts[..DIE_HOLDING]
        .iter()
        .all(|count| *count == TIMES / 4));
    let told: i64 = counts.iter().sum();
    let counted = shared.get();
    // A kill may fall between the two files.
    let most = told + KILLED as i64;
    assert!((told..=most).contains(&counted), "{counted} of {told}");
    server.alive();
}
