//! The border between the server's callbacks and our code: no panic crosses it.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis_module::raw;

use super::count::Gauge;
use super::ctx::{log, Ctx};

/// Callbacks of ours that are under way, one in the other.
static UNDER_WAY: Gauge = Gauge::zero();

/// The thread of the first of them.
static THREAD: AtomicUsize = AtomicUsize::new(0);

/// Panics that were caught.
static FAULTS: Gauge = Gauge::zero();

pub fn faults() -> u32 {
    FAULTS.get()
}

/// How many callbacks of ours are under way, one in the other.
pub fn under_way() -> u32 {
    UNDER_WAY.get()
}

/// Runs a callback of the server's with its context. `None`: there was none, or it failed.
///
/// # Safety
/// The server has passed the context to a callback, which does not return before this does.
pub(super) unsafe fn callback<T>(
    ctx: *mut raw::RedisModuleCtx,
    what: &str,
    run: impl FnOnce(Ctx<'_>) -> T,
) -> Option<T> {
    // SAFETY: as the caller says.
    let ctx = unsafe { Ctx::new(ctx) }?;
    guarded(Some(ctx), what, || run(ctx))
}

/// Runs a callback so that no panic crosses into the server, where it would take
/// everybody's data down. There is none that we know of. `None`: there was one.
pub(super) fn guarded<T>(ctx: Option<Ctx<'_>>, what: &str, run: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: it takes nothing.
    let thread = unsafe { libc::pthread_self() } as usize;
    if UNDER_WAY.get() == 0 {
        THREAD.store(thread, Ordering::Relaxed);
    } else if THREAD.load(Ordering::Relaxed) != thread {
        // What else is under way may be in the middle of anything.
        let text =
            format!("rlock: {what} is left out: it came by a thread without the server's lock");
        log(ctx, c"warning", &text);
        return None;
    }
    UNDER_WAY.more();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    UNDER_WAY.less();
    if result.is_err() {
        FAULTS.more();
        let text = format!("rlock: a fault in {what}; please report it");
        log(ctx, c"warning", &text);
    }
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one test that counts here: the count is one for all threads.
    #[test]
    fn a_callback_in_the_middle_of_another_one_by_another_thread_is_left_out() {
        let elsewhere = || {
            let run = || guarded(None, "another thread's", || ());
            std::thread::spawn(run).join().ok().flatten()
        };
        assert_eq!(elsewhere(), Some(()));
        let inside = guarded(None, "the first", || {
            let nested = guarded(None, "a nested one", under_way);
            (elsewhere(), nested, under_way())
        });
        assert_eq!(inside, Some((None, Some(2), 1)));
        assert_eq!((under_way(), elsewhere()), (0, Some(())));
    }
}
