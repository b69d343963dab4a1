//! Where all threads write down what they saw.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rlock_torture::saw::{Record, Recorder};

pub struct Book(Mutex<Recorder>);

impl Book {
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(Mutex::new(Recorder::create(path)?)))
    }

    pub fn write(&self, record: &Record) {
        if let Err(error) = locked(&self.0).write(record) {
            eprintln!("torture: the history cannot be written: {error}");
            std::process::abort();
        }
    }

    pub fn flush(&self) -> io::Result<()> {
        locked(&self.0).flush()
    }
}

/// A thread that panicked ends the run by other ways.
pub fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
