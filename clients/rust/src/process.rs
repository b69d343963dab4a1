//! Which process this is, for those who ask millions of times a second: a system call takes longer than all that a use of
//! a sticky lock does else.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The process's number, in a page of which a fork has an empty copy. Null while there is none, and where the system
/// has no such pages.
static KNOWN: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// As `std::process::id`.
pub(crate) fn id() -> u32 {
    // SAFETY: it is null, or points to what is there as long as the process is.
    let Some(known) = (unsafe { KNOWN.load(Ordering::Acquire).as_ref() }) else {
        return std::process::id();
    };
    match known.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            known.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// From now on it is fast, if the system can do that.
pub(crate) fn prepare() {
    if !KNOWN.load(Ordering::Acquire).is_null() {
        return;
    }
    let Some(page) = page() else { return };
    // Of two that come at once the page of one is not used: it stays.
    _ = KNOWN.compare_exchange(
        std::ptr::null_mut(),
        page,
        Ordering::AcqRel,
        Ordering::Acquire,
    );
}

#[cfg(target_os = "linux")]
fn page() -> Option<*mut AtomicU32> {
    // SAFETY: it asks for memory of its own at any address.
    let page = unsafe {
        // The system makes it a whole page.
        let (read_write, own) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        libc::mmap(std::ptr::null_mut(), SIZE, read_write, own, -1, 0)
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: it is that page, which is of nobody else yet.
    let is_wiped = unsafe { libc::madvise(page, SIZE, libc::MADV_WIPEONFORK) } == 0;
    if !is_wiped {
        // SAFETY: as before.
        unsafe { libc::munmap(page, SIZE) };
        return None;
    }
    Some(page.cast())
}

#[cfg(target_os = "linux")]
const SIZE: usize = 4096;

#[cfg(not(target_os = "linux"))]
fn page() -> Option<*mut AtomicU32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_process_in_forks_of_forks_too() {
        prepare();
        for _ in 0..3 {
            assert_eq!(id(), std::process::id());
        }
        // SAFETY: the children call nothing but what may be called in a fork of a process with threads.
        let good = unsafe {
            in_child(|| id() == std::process::id() && in_child(|| id() == std::process::id()))
        };
        assert!(good);
    }

    unsafe fn in_child(look: impl FnOnce() -> bool) -> bool {
        // SAFETY: as the caller says.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(i32::from(!look()));
            }
            let mut status = 0;
            child > 0 && libc::waitpid(child, &mut status, 0) == child && status == 0
        }
    }
}
