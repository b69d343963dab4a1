//! The threads that serve the connections of this process, two for all of them.
//!
//! They run no code of the program and wait for nothing that the program does. So whatever
//! becomes of the program's own threads, tasks and runtimes, sessions go on.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::Error;

/// With the process that it is of: a fork has no copy of the threads. No mutex: it would have a
/// copy of one that somebody has locked.
static SERVING: AtomicPtr<(u32, Handle)> = AtomicPtr::new(ptr::null_mut());

const WORKERS: usize = 2;

/// Begins with the first session, and stays: without sessions the threads do nothing.
pub fn runtime() -> Result<Handle, Error> {
    let me = std::process::id();
    let before = SERVING.load(Ordering::Acquire);
    if let Some(handle) = of(me, before) {
        return Ok(handle);
    }
    let new = start().map_err(|error| Error::Connection(format!("no thread: {error}")))?;
    let serving = Box::into_raw(Box::new((me, new.handle().clone())));
    let put = SERVING.compare_exchange(before, serving, Ordering::AcqRel, Ordering::Acquire);
    if let Err(first) = put
        && let Some(handle) = of(me, first)
    {
        // Another thread was faster. What was made here stays, and is no larger than a few words.
        new.shutdown_background();
        return Ok(handle);
    }
    // A fork could not end it.
    Ok(Box::leak(Box::new(new)).handle().clone())
}

fn of(process: u32, serving: *mut (u32, Handle)) -> Option<Handle> {
    // SAFETY: it is null, or was made of a box that is never freed nor changed.
    let serving = unsafe { serving.as_ref() }?;
    (serving.0 == process).then(|| serving.1.clone())
}

fn start() -> io::Result<Runtime> {
    // And one for looking up names and for callbacks.
    can_have_threads(WORKERS + 1)?;
    Builder::new_multi_thread()
        // What one session has much to do with keeps no other from its heartbeat.
        .worker_threads(WORKERS)
        .enable_all()
        .thread_name("rlock")
        // Here callbacks of the program run, which may wait for each other.
        .max_blocking_threads(1 << 16)
        .build()
}

/// Where the system gives it no thread tokio panics, or hangs.
fn can_have_threads(many: usize) -> io::Result<()> {
    let tried = (0..many).map(|_| {
        let (end, ended) = channel::<()>();
        let thread = thread::Builder::new().spawn(move || _ = ended.recv())?;
        io::Result::Ok((end, thread))
    });
    for (end, thread) in tried.collect::<io::Result<Vec<_>>>()? {
        drop(end);
        _ = thread.join();
    }
    Ok(())
}
