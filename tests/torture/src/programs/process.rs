//! Processes that end with ours.

use std::io::{self, Error};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts one that the kernel kills when ours dies. To be called by the main thread only, for it
/// is the thread whose death counts.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    // SAFETY: prctl is one system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(
            || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            },
        );
    }
    command.spawn()
}

pub fn send_signal(pid: u32, signal: i32) {
    // SAFETY: kill has no memory effects here, and the pid is that of a child which was not
    // waited for.
    unsafe { libc::kill(pid as i32, signal) };
}
