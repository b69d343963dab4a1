//! `rlock` as a child of the test.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

use crate::server::{PATIENCE, Server, dies_with_us, until};

pub struct Done {
    /// As a shell shows it.
    pub code: i32,
    pub out: String,
    pub errors: String,
}

pub fn rlock(server: &Server, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlock"));
    command
        .env("RLOCK_URL", server.address())
        .args(words)
        .stdin(Stdio::null());
    dies_with_us(&mut command);
    command
}

pub fn done(server: &Server, words: &[&str]) -> Done {
    end(rlock(server, words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap())
}

pub fn end(child: Child) -> Done {
    let id = i32::try_from(child.id()).unwrap();
    let (is_over, over) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if over.recv_timeout(PATIENCE * 4) == Err(RecvTimeoutError::Timeout) {
            // SAFETY: takes numbers.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
    });
    let done = child.wait_with_output().unwrap();
    drop(is_over);
    let by_signal = || 128 + done.status.signal().unwrap();
    Done {
        code: done.status.code().unwrap_or_else(by_signal),
        out: String::from_utf8(done.stdout).unwrap(),
        errors: String::from_utf8(done.stderr).unwrap(),
    }
}

/// A folder for what the commands of a test write.
pub struct Notes(PathBuf);

impl Notes {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("rlock-notes-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    pub fn read(&self, name: &str) -> String {
        let mut text = String::new();
        if let Ok(mut file) = std::fs::File::open(self.path(name)) {
            file.read_to_string(&mut text).unwrap();
        }
        text
    }

    /// The process ids that were written there, once there are so many.
    pub fn ids(&self, name: &str, many: usize) -> Vec<i32> {
        let read = || -> Vec<i32> {
            let text = self.read(name);
            let whole = text.ends_with('\n');
            text.lines()
                .filter_map(|line| line.parse().ok())
                .filter(|_| whole)
                .collect()
        };
        until(|| read().len() == many);
        read()
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn signal(child: &Child, signal: i32) {
    // SAFETY: a signal to a child that was not waited for yet.
    unsafe { libc::kill(child.id() as i32, signal) };
}

/// Neither gone nor a zombie.
pub fn is_alive(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}
