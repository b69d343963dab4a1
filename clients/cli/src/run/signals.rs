//! Which signals a process takes, and what the command is given back.

/// What the guard does not end or stop by: it has to outlive `rlock`.
const DEAF: [i32; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// Ignored before, as by `nohup`.
#[derive(Clone, Copy, Debug)]
pub struct Before([bool; DEAF.len()]);

/// In the guard. The command gets back what was before.
pub fn be_deaf() -> Before {
    // SAFETY: changes dispositions of this process; no handler is involved.
    Before(DEAF.map(|signal| unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_IGN))
}

impl Before {
    /// Between fork and exec.
    pub fn restore(self) {
        for (signal, ignored) in DEAF.into_iter().zip(self.0) {
            let how = if ignored {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            // SAFETY: as above; safe between fork and exec.
            unsafe { libc::signal(signal, how) };
        }
        // SAFETY: an empty set on the stack; both calls are safe between fork and exec.
        unsafe {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        }
    }
}

/// To all of a process group. That it is empty is no error.
pub fn send(group: i32, signal: i32) {
    // SAFETY: takes numbers. The group's number is taken as long as its first process was
    // not waited for.
    unsafe { libc::kill(-group, signal) };
}

/// Whether anybody is left in it.
pub fn is_there(group: i32) -> bool {
    // SAFETY: takes numbers; sends nothing.
    unsafe {
        libc::kill(-group, 0) == 0
            || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }
}
