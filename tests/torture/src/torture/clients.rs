//! The client processes, and talking to them.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::{send_signal, spawn};

pub struct Client {
    child: Child,
}

impl Client {
    /// Starts this program again, as a client or what else `args` say; what it says
    /// goes to `heard`.
    pub fn start(args: &[String], heard: Option<Sender<()>>) -> io::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = spawn(command)?;
        if let (Some(heard), Some(output)) = (heard, child.stdout.take()) {
            thread::spawn(move || {
                for _ in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = heard.send(());
                }
            });
        }
        Ok(Self { child })
    }

    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let mut stdin = self.child.stdin.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(format!("{line}\n").as_bytes())
    }

    pub fn signal(&self, signal: i32) {
        send_signal(self.child.id(), signal);
    }

    /// Closes its standard input, which is its end; false if it had to be killed, or
    /// failed.
    pub fn end(&mut self) -> bool {
        drop(self.child.stdin.take());
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.success();
            }
            thread::sleep(Duration::from_millis(3));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        false
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for so many words, at most for `bound`; how many came.
pub fn hear(heard: &Receiver<()>, count: usize, bound: Duration) -> usize {
    let end = Instant::now() + bound;
    let mut got = 0;
    while got < count {
        let left = end.saturating_duration_since(Instant::now());
        match heard.recv_timeout(left) {
            Ok(()) => got += 1,
            Err(_) => break,
        }
    }
    got
}
