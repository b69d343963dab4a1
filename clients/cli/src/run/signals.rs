//! Which signals a process takes, and what the command is given back.

use std::sync::atomic::{AtomicBool, Ordering};

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

/// As it was at the start, if it has no handler yet.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: zeros are a value of it, and it may be written; nothing is changed.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now);
        now.sa_sigaction == libc::SIG_IGN
    }
}

/// Ignored before, where ends of children would not be reported.
static CHILD_IGNORED: AtomicBool = AtomicBool::new(false);

/// Nothing is kept from this process that it was started with: that children end is reported, and no
/// signal is held back. The command gets back the first, and holds none back either.
pub fn unblock() {
    CHILD_IGNORED.store(is_ignored(libc::SIGCHLD), Ordering::Relaxed);
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    hold_none_back();
}

/// Safe between fork and exec.
fn hold_none_back() {
    // SAFETY: a set on the stack.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &set_of(&[]), std::ptr::null_mut()) };
}

/// In this thread alone.
pub fn block(signal: i32) {
    // SAFETY: a set on the stack.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(&[signal]), std::ptr::null_mut()) };
}

/// Safe between fork and exec.
fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: zeros are a value of it, and it may be written.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Rust's own start has every process ignore it, and every command not.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn look_at_pipe() {
    PIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

// SAFETY: the loader calls what stands there before `main`, without arguments that it needs.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = look_at_pipe;

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
        for (signal, ignored) in [
            (libc::SIGPIPE, &PIPE_IGNORED),
            (libc::SIGCHLD, &CHILD_IGNORED),
        ] {
            if ignored.load(Ordering::Relaxed) {
                // SAFETY: as above.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
        }
        hold_none_back();
    }
}

/// To all of a process group. That it is empty is no error.
pub fn send(group: i32, signal: i32) {
    // SAFETY: takes numbers. The group's number is taken as long as its first process was
    // not waited for.
    unsafe { libc::kill(-group, signal) };
}

pub fn send_one(id: i32, signal: i32) {
    // SAFETY: takes numbers.
    unsafe { libc::kill(id, signal) };
}

/// Those that a key of the terminal sends to end what runs there.
pub fn is_key(signal: i32) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGQUIT)
}

/// Ends this process by the signal that has ended the command, so that a shell script around
/// it sees that it was interrupted, and ends too. `all`: while the command had the terminal
/// the signal came to nobody else; so it goes to `rlock`'s whole group, which has the script.
/// Returns where it has no effect, such as in process 1 of a container.
pub fn die(signal: i32, all: bool) {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: structs that are read or written, and numbers.
    unsafe {
        // The command's core is the one that shows something.
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set_of(&[signal]), std::ptr::null_mut());
        if all {
            libc::kill(0, signal);
        } else {
            libc::raise(signal);
        }
    }
}

/// Whether there is such a group.
pub fn is_there(group: i32) -> bool {
    // SAFETY: takes numbers; sends nothing.
    unsafe {
        libc::kill(-group, 0) == 0
            || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }
}
