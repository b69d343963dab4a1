//! Which of many connections have something to read: epoll, level-triggered.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// At most this many connections are reported at once.
const BATCH: usize = 256;

/// Watches connections, each under a number of the caller's.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poller {
    /// Watches nothing yet.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the result is checked before it is used.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made just now and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; BATCH];
        Ok(Poller { epoll, events })
    }

    /// Watches `source` under `number`.
    pub fn watch(&mut self, source: &impl AsRawFd, number: usize) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: number as u64,
        };
        // SAFETY: both descriptors are open, and `event` outlives the call.
        let result = unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                source.as_raw_fd(),
                &raw mut event,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until something can be read, or for `patience`; the numbers of
    /// the connections to read replace what was in `ready`.
    pub fn wait(&mut self, patience: Duration, ready: &mut Vec<usize>) -> io::Result<()> {
        ready.clear();
        // SAFETY: `events` has room for BATCH events.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                BATCH as libc::c_int,
                patience.as_millis() as libc::c_int,
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            };
        }
        let happened = &self.events[..count as usize];
        ready.extend(happened.iter().map(|event| event.u64 as usize));
        Ok(())
    }
}
