//! The threads that serve the connections of this process, two for all of them.
//!
//! They run no code of the program and wait for nothing that the program does. So whatever
//! becomes of the program's own threads, tasks and runtimes, sessions go on.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};

use crate::error::Error;

/// With the process that it is of: a fork has no copy of the threads.
static SERVING: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// Begins with the first session, and stays: without sessions the threads do nothing.
pub fn runtime() -> Result<Handle, Error> {
    let me = std::process::id();
    let mut serving = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, runtime)) = &*serving
        && *process == me
    {
        return Ok(runtime.clone());
    }
    let runtime = start().map_err(|error| Error::Connection(format!("no thread: {error}")))?;
    Ok(serving.insert((me, runtime)).1.clone())
}

fn start() -> std::io::Result<Handle> {
    let runtime = Builder::new_multi_thread()
        // What one session has much to do with keeps no other from its heartbeat.
        .worker_threads(2)
        .enable_all()
        .thread_name("rlock")
        // Here callbacks of the program run, which may wait for each other.
        .max_blocking_threads(1 << 16)
        .build()?;
    // A fork could not end it.
    Ok(Box::leak(Box::new(runtime)).handle().clone())
}
