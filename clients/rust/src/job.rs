//! A piece of work that takes several locks.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

/// Holds with one owner. Deadlocks are seen between owners, so take the locks of one piece
/// of work through one job.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(locks: rlock_client::Locks) -> Result<(), rlock_client::Error> {
/// let job = locks.job();
/// let from = locks.acquire("account:1").job(&job).wait(Duration::from_secs(5)).await?;
/// let to = locks.acquire("account:2").job(&job).wait(Duration::from_secs(5)).await?;
/// # drop((from, to)); Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    owner: Arc<str>,
    keys: Arc<Mutex<HashSet<String>>>,
    process: u32,
}

impl Job {
    pub(crate) fn new() -> Self {
        Self {
            owner: fresh_owner().into(),
            keys: Arc::default(),
            process: std::process::id(),
        }
    }

    /// The owner of all its holds, as the server knows it. Without the module each of them has an
    /// owner of its own.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Keeps the keys for one request and its hold.
    pub(crate) fn take(&self, keys: &[String]) -> Result<Place, Error> {
        // One owner of two processes would have each lock in both.
        if self.process != std::process::id() {
            let text = "the job is of the process that this one was forked from: make another";
            return Err(Error::Argument(text.into()));
        }
        let mut taken = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.iter().find(|key| taken.contains(*key)) {
            return Err(Error::HeldByJob(key.clone()));
        }
        taken.extend(keys.iter().cloned());
        let keys = Mutex::new(keys.to_vec());
        let job = self.clone();
        Ok(Place { job, keys })
    }
}

/// The keys of one request in its job.
#[derive(Debug)]
pub(crate) struct Place {
    job: Job,
    keys: Mutex<Vec<String>>,
}

impl Place {
    pub fn owner(&self) -> &str {
        self.job.owner()
    }

    /// The same keys, for the next request of the job, which no other comes before.
    pub fn hand_over(&self) -> Self {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = Mutex::new(std::mem::take(&mut *keys));
        let job = self.job.clone();
        Self { job, keys }
    }

    /// From now on the job may ask for them again.
    pub fn leave(&self) {
        // What a fork has a copy of may be locked for ever.
        if self.job.process != std::process::id() {
            return;
        }
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = &self.job.keys;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys.drain(..) {
            taken.remove(&key);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A name that nobody else has, and that shows an operator who it is.
pub(crate) fn fresh_owner() -> String {
    format!("{}:{}:{}", host(), std::process::id(), uuid::Uuid::new_v4())
}

fn host() -> String {
    let mut name = [0_u8; 65];
    // SAFETY: the buffer may be written over its length, of which one byte stays zero.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    match String::from_utf8_lossy(&name[..length]) {
        name if failed || name.is_empty() => "host".into(),
        name => name.into_owned(),
    }
}
