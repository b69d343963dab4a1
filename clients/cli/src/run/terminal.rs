//! Whose turn it is at the terminal.

use std::io::Error;

/// The terminal that `rlock` was started on, as it was then.
#[derive(Clone, Copy)]
pub struct Terminal {
    fd: i32,
    /// `rlock`'s own process group, with what else the shell has put into it.
    group: i32,
    modes: libc::termios,
    /// The command reads from it and writes to it, so it has it from the start. Else, such as
    /// in a pipe to a pager, it gets it when it asks for it.
    pub at_once: bool,
}

impl Terminal {
    pub fn find() -> Option<Self> {
        // SAFETY: these take descriptors, which need not be open.
        let is_terminal = |fd| unsafe { libc::isatty(fd) } == 1;
        let fd = (0..3).find(|&fd| is_terminal(fd))?;
        // SAFETY: no arguments, and it cannot fail.
        let group = unsafe { libc::getpgrp() };
        // SAFETY: zeros are a value of this struct of integers.
        let mut modes: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: `modes` may be written; it is an error if `fd` is no terminal.
        if unsafe { libc::tcgetattr(fd, &mut modes) } != 0 {
            return None;
        }
        let at_once = is_terminal(0) && is_terminal(1);
        Some(Self {
            fd,
            group,
            modes,
            at_once,
        })
    }

    /// `rlock` is in the foreground.
    pub fn is_ours(&self) -> bool {
        self.owner() == self.group
    }

    /// The group that has it.
    pub fn owner(&self) -> i32 {
        // SAFETY: takes a descriptor.
        unsafe { libc::tcgetpgrp(self.fd) }
    }

    /// To this group. TTOU is to be ignored meanwhile.
    pub fn give(&self, group: i32) -> Result<(), Error> {
        // SAFETY: takes numbers.
        match unsafe { libc::tcsetpgrp(self.fd, group) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Back from the command. One that was killed leaves its modes behind.
    pub fn take_back(&self, killed: bool) {
        _ = self.give(self.group);
        if killed {
            // SAFETY: `modes` are those that tcgetattr gave.
            unsafe { libc::tcsetattr(self.fd, libc::TCSADRAIN, &self.modes) };
        }
    }
}
