//! On a terminal: what a person sees, and whom the keys reach.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::server::{Server, until};
use crate::tool::{Notes, end, rlock};

/// A terminal, whose session the child leads.
pub struct Screen {
    keys: File,
    seen: Arc<Mutex<String>>,
    child: Option<Child>,
}

impl Screen {
    pub fn run(server: &Server, words: &[&str]) -> Self {
        Self::show(rlock(server, words))
    }

    pub fn show(mut command: Command) -> Self {
        let (mut master, mut slave) = (-1, -1);
        let null = std::ptr::null_mut();
        // SAFETY: two numbers that may be written; the rest is left out.
        let opened =
            unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
        assert_eq!(opened, 0);
        // SAFETY: new descriptors that nobody else has.
        let (keys, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
        // SAFETY: takes numbers; the child is not to have it.
        unsafe { libc::fcntl(keys.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: both may be called between fork and exec; 0 is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            })
        };
        let child = Some(command.spawn().unwrap());
        let seen = Arc::new(Mutex::new(String::new()));
        let (mut reads, text) = (keys.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(length @ 1..) = reads.read(&mut some) {
                text.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&some[..length]));
            }
        });
        Self { keys, seen, child }
    }

    pub fn text(&self) -> String {
        self.seen.lock().unwrap().clone()
    }

    pub fn see(&self, what: &str) {
        until(|| self.text().contains(what));
    }

    /// Until a program of this name runs there: a shell that hears of ctrl-c between two commands
    /// may begin the next one all the same, and wait for it.
    pub fn runs(&self, name: &str) {
        let session = self.child.as_ref().unwrap().id().to_string();
        let is_it = |stat: String| {
            let Some((start, rest)) = stat.rsplit_once(") ") else {
                return false;
            };
            start.ends_with(&format!("({name}")) && rest.split(' ').nth(3) == Some(&session)
        };
        until(|| {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let stat = |one: std::fs::DirEntry| std::fs::read_to_string(one.path().join("stat"));
            all.filter_map(|one| stat(one).ok()).any(is_it)
        });
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub fn end(&mut self) -> i32 {
        end(self.child.take().unwrap()).code
    }
}

#[test]
fn the_command_reads_from_the_terminal() {
    let server = Server::start();
    let mut screen = Screen::run(
        &server,
        &["run", "jobs", "--", "sh", "-c", "read line; echo got $line"],
    );
    screen.press("hello\n");
    screen.see("got hello");
    assert_eq!(screen.end(), 0);
}

/// By ctrl-s: what is shown while it waits goes nowhere then.
#[test]
fn a_terminal_that_is_stopped_keeps_nothing_back() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs somebody 600000");
    let notes = Notes::new();
    let script = format!("touch {}", notes.path("ran"));
    let words = ["run", "--wait", "10m", "jobs", "--", "sh", "-c", &script];
    let mut screen = Screen::run(&server, &words);
    screen.see("waiting for jobs");
    screen.press("\u{13}");
    // The line is written once a second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    server.ask::<i64>("RLOCK.RELEASE jobs somebody");
    until(|| std::path::Path::new(&notes.path("ran")).exists());
    screen.press("\u{11}");
    assert_eq!(screen.end(), 0);
}

#[test]
fn ctrl_c_reaches_the_command() {
    let server = Server::start();
    let script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let mut screen = Screen::run(&server, &["run", "jobs", "--", "sh", "-c", script]);
    screen.see("ready");
    screen.press("\x03");
    screen.see("interrupted");
    assert_eq!(screen.end(), 5);
    assert!(server.is_free("jobs"));
}

#[test]
fn ctrl_z_does_not_stop_it() {
    let server = Server::start();
    let script = "echo ready; read line; echo got $line";
    let mut screen = Screen::run(&server, &["run", "jobs", "--", "sh", "-c", script]);
    screen.see("ready");
    screen.press("\x1a");
    screen.see("it goes on");
    screen.press("more\n");
    screen.see("got more");
    assert_eq!(screen.end(), 0);
}

#[test]
fn who_waits_sees_its_place_and_the_holder() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 60000");
    let mut screen = Screen::run(
        &server,
        &["run", "--wait", "1h", "jobs", "--", "echo", "ran"],
    );
    screen.see("1 of 1 in the queue, held by ann");
    server.ask::<i64>("RLOCK.RELEASE jobs ann");
    screen.see("ran");
    assert_eq!(screen.end(), 0);
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 60000");
    let mut screen = Screen::run(
        &server,
        &["run", "--wait", "1h", "jobs", "--", "echo", "ran"],
    );
    screen.see("in the queue");
    screen.press("\x03");
    assert_eq!(screen.end(), 128 + libc::SIGINT);
    until(|| server.waiters("jobs") == 0);
}

#[test]
fn who_waits_sees_that_there_is_no_connection() {
    let server = Server::start();
    let words = [
        "--url",
        "127.0.0.1:1",
        "run",
        "--wait",
        "forever",
        "jobs",
        "--",
        "true",
    ];
    let mut screen = Screen::run(&server, &words);
    screen.see("no connection to 127.0.0.1:1: Connection refused");
    screen.press("\x03");
    assert_eq!(screen.end(), 128 + libc::SIGINT);
    let servers = ["--quorum", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"];
    let words = [
        &["run", "--wait", "forever"],
        &servers[..],
        &["jobs", "--", "true"],
    ]
    .concat();
    let mut screen = Screen::run(&server, &words);
    screen.see("no connection: Connection refused");
    screen.press("\x03");
    assert_eq!(screen.end(), 128 + libc::SIGINT);
}

#[test]
fn quiet_is_quiet() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 1500");
    let mut screen = Screen::run(
        &server,
        &[
            "run", "--quiet", "--wait", "1h", "jobs", "--", "echo", "ran",
        ],
    );
    screen.see("ran");
    assert_eq!(screen.end(), 0);
    assert_eq!(screen.text().trim(), "ran");
}

#[test]
fn top_is_drawn_until_q() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 60000");
    let mut screen = Screen::run(&server, &["top"]);
    screen.see("nobody waits");
    screen.see("/s acquired");
    screen.press("q");
    assert_eq!(screen.end(), 0);
}

#[test]
fn force_asks_a_person() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 60000");
    let mut screen = Screen::run(&server, &["force", "jobs"]);
    screen.see("held by ann");
    screen.press("n\n");
    assert_eq!(screen.end(), 1);
    assert!(!server.is_free("jobs"));
    let mut screen = Screen::run(&server, &["force", "jobs"]);
    screen.see("[y/N]");
    screen.press("y\n");
    assert_eq!(screen.end(), 0);
    assert!(server.is_free("jobs"));
}
