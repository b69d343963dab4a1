//! What is said to people on standard error, whatever it is.

use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::run::signals;

/// So long is waited for whoever reads it. The lease is to be renewed meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);

static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// A line of its own.
pub fn complain(text: &str) {
    put(format!("rlock: {text}\n"));
}

/// Nothing depends on it: if the reader is gone, or the disk is full, it is not said; and
/// once somebody has not read on (a terminal can be stopped by ctrl-s), nothing more is.
pub fn put(text: String) {
    if IS_STUCK.load(Ordering::Relaxed) {
        return;
    }
    let (said, done) = channel();
    let say = move || {
        // While the command has the terminal, and that is set to `tostop`, to write there would stop
        // the whole process.
        signals::block(libc::SIGTTOU);
        _ = stderr().write_all(text.as_bytes());
        _ = stderr().flush();
        _ = said.send(());
    };
    let saying = thread::Builder::new().spawn(say);
    if saying.is_ok() && done.recv_timeout(PATIENCE).is_err() {
        IS_STUCK.store(true, Ordering::Relaxed);
    }
}
