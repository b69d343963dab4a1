//! What is said to people on standard error, whatever it is.

use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// So long is waited for whoever reads it. The lease is to be renewed meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);

static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// A line. Nothing depends on it: if the reader is gone, or the disk is full, it is not said; and
/// once somebody has not read on, nothing more is.
pub fn complain(text: &str) {
    if IS_STUCK.load(Ordering::Relaxed) {
        return;
    }
    let line = format!("rlock: {text}\n");
    let (said, done) = channel();
    let say = move || {
        _ = stderr().write_all(line.as_bytes());
        _ = said.send(());
    };
    let saying = thread::Builder::new().spawn(say);
    if saying.is_ok() && done.recv_timeout(PATIENCE).is_err() {
        IS_STUCK.store(true, Ordering::Relaxed);
    }
}
