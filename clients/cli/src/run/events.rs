//! What the guard waits for, as descriptors.

use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A descriptor that can be read when a child has changed.
pub fn children() -> Result<OwnedFd, Error> {
    // SAFETY: a set on the stack that is filled before it is used. SIGCHLD is blocked in this
    // process, and the command's mask is emptied before it runs.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        owned(libc::signalfd(
            -1,
            &set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))
    }
}

/// By the clock of leases: it goes on while the machine is suspended.
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new() -> Result<Self, Error> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes numbers, and gives a new descriptor.
        let fd = unsafe { owned(libc::timerfd_create(libc::CLOCK_BOOTTIME, flags)) };
        fd.map(Self)
    }

    /// None switches it off.
    pub fn set(&self, at: Option<Duration>) -> Result<(), Error> {
        let at = at.unwrap_or_default();
        // SAFETY: zeros are a value of this struct of integers; they switch the timer off.
        let mut time: libc::itimerspec = unsafe { std::mem::zeroed() };
        time.it_value.tv_sec = i64::try_from(at.as_secs()).map_err(Error::other)?;
        time.it_value.tv_nsec = i64::from(at.subsec_nanos());
        let (fd, absolute) = (self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
        // SAFETY: a timer's descriptor, and a struct that is read.
        match unsafe { libc::timerfd_settime(fd, absolute, &time, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// # Safety
/// `fd` is a new descriptor that nobody else has, or -1.
unsafe fn owned(fd: i32) -> Result<OwnedFd, Error> {
    match fd {
        -1 => Err(Error::last_os_error()),
        // SAFETY: as said above.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

pub fn drain(fd: &OwnedFd) {
    let mut some = [0_u8; 1024];
    // SAFETY: the buffer may be written over its length.
    while unsafe { libc::read(fd.as_raw_fd(), some.as_mut_ptr().cast(), some.len()) } > 0 {}
}

/// Which of them can be read; none when the time is over (-1: for ever).
pub fn poll<const N: usize>(fds: [i32; N], patience_ms: i32) -> Result<[bool; N], Error> {
    let mut polled = fds.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let count = polled.len() as libc::nfds_t;
    // SAFETY: an array of that length that may be written.
    match unsafe { libc::poll(polled.as_mut_ptr(), count, patience_ms) } {
        -1 if Error::last_os_error().raw_os_error() != Some(libc::EINTR) => {
            Err(Error::last_os_error())
        }
        -1 => Ok([false; N]),
        _ => Ok(polled.map(|one| one.revents != 0)),
    }
}
