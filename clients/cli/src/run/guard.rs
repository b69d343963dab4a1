//! The guard: a small process between `rlock` and the command, whose parent it is.
//!
//! It knows until when the lock is held, for `rlock` tells it of each renewal; and it ends
//! the command's process group in time whatever becomes of `rlock`: killed, stopped, stuck.
//! It runs one thread and waits for three things: a word from `rlock`, a change of the
//! command's, and the time.

use std::ffi::OsString;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use super::signals::{self, Before};
use super::terminal::Terminal;
use super::words::{Order, Report, Until};
use crate::clock::now;

/// What is left of the group when its first process has ended has so long to end by TERM.
const REST: Duration = Duration::from_secs(2);

struct Guard {
    rlock: UnixStream,
    heard: Vec<u8>,
    terminal: Option<Terminal>,
    before: Before,
    command: Vec<OsString>,
    key: String,
    group: Option<i32>,
    until: Option<Until>,
    term_sent: bool,
    kill_sent: bool,
    /// The command stands still until it has the terminal.
    wants_terminal: bool,
}

/// Forks it off. There must be no other thread yet. Returns `rlock`'s end.
pub fn start(key: &str, command: &[OsString]) -> Result<UnixStream, Error> {
    let terminal = Terminal::find();
    let (ours, its) = UnixStream::pair()?;
    // SAFETY: there is one thread, so the child may do all that this process may.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        0 => {
            drop(ours);
            // A group of its own: what ends all of `rlock`'s does not end it.
            // SAFETY: takes numbers.
            unsafe { libc::setpgid(0, 0) };
            // SAFETY: a string that ends in a zero.
            unsafe { libc::prctl(libc::PR_SET_NAME, c"rlock-guard".as_ptr()) };
            let before = signals::be_deaf();
            let guard = Guard {
                rlock: its,
                heard: Vec::new(),
                terminal,
                before,
                command: command.to_vec(),
                key: key.into(),
                group: None,
                until: None,
                term_sent: false,
                kill_sent: false,
                wants_terminal: false,
            };
            let end = guard.run();
            std::process::exit(i32::from(end.is_err()));
        }
        _ => Ok(ours),
    }
}

impl Guard {
    fn run(mut self) -> Result<(), Error> {
        let (children, timer) = (children()?, timer()?);
        let mut gone = false;
        loop {
            self.set(&timer)?;
            // poll passes over -1.
            let rlock = if gone { -1 } else { self.rlock.as_raw_fd() };
            // Shells do not say that they have put a running job to the foreground.
            let patience = if self.wants_terminal { 200 } else { -1 };
            let ready = poll([rlock, children.as_raw_fd(), timer.as_raw_fd()], patience)?;
            if ready[0] && !self.hear() {
                // `rlock` is gone, and nobody renews.
                if self.group.is_none() {
                    return Ok(());
                }
                self.term();
                gone = true;
            }
            if ready[1] {
                drain(&children);
                if let Some(status) = self.look() {
                    self.end_rest();
                    self.report(&Report::Ended(status));
                    return Ok(());
                }
            }
            if self.wants_terminal {
                self.resume();
            }
            self.keep_time();
        }
    }

    /// False when `rlock` is gone.
    fn hear(&mut self) -> bool {
        let mut some = [0; 4096];
        match self.rlock.read(&mut some) {
            Ok(0) => return false,
            Ok(length) => self.heard.extend_from_slice(&some[..length]),
            Err(error) => return error.kind() == std::io::ErrorKind::Interrupted,
        }
        while let Some(end) = self.heard.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(order) = Order::parse(line.trim_end()) {
                self.obey(order);
            }
        }
        true
    }

    fn report(&mut self, report: &Report) {
        // If nobody hears it there is nobody to tell.
        _ = self.rlock.write_all(report.line().as_bytes());
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start {
                token,
                owner,
                until,
            } => {
                self.until = Some(until);
                match self.spawn(token, &owner) {
                    Ok(group) => {
                        self.group = Some(group);
                        self.report(&Report::Started(group));
                    }
                    Err(error) => {
                        let why = error.raw_os_error().unwrap_or(libc::EINVAL);
                        self.report(&Report::Failed(why));
                    }
                }
            }
            Order::Until(until) if !self.term_sent => self.until = Some(until),
            // Once it was sent TERM its time does not grow any more.
            Order::Until(_) => {}
            Order::Signal(signal) => {
                if let Some(group) = self.group {
                    signals::send(group, signal);
                    if self.wants_terminal {
                        // It hears nothing while it stands still.
                        signals::send(group, libc::SIGCONT);
                    }
                }
            }
            Order::Continue if self.wants_terminal => self.resume(),
            Order::Continue => {}
            Order::End => self.term(),
        }
    }

    fn spawn(&self, token: u64, owner: &str) -> Result<i32, Error> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
            .env("RLOCK_KEY", &self.key)
            .env("RLOCK_OWNER", owner);
        command.env("RLOCK_TOKEN", token.to_string());
        command.process_group(0);
        let before = self.before;
        let terminal = self
            .terminal
            .filter(|terminal| terminal.at_once && terminal.is_ours());
        // SAFETY: what it calls may be called between fork and exec.
        unsafe {
            command.pre_exec(move || {
                if let Some(terminal) = terminal {
                    // It is the group's first, so its id is the group's. TTOU is ignored still.
                    _ = terminal.give(libc::getpid());
                }
                before.restore();
                Ok(())
            })
        };
        let child = command.spawn()?;
        i32::try_from(child.id()).map_err(Error::other)
    }

    fn term(&mut self) {
        if let Some(group) = self.group
            && !self.term_sent
        {
            self.term_sent = true;
            signals::send(group, libc::SIGTERM);
            // One that is stopped hears nothing else.
            signals::send(group, libc::SIGCONT);
        }
    }

    /// What has to be done by now.
    fn keep_time(&mut self) {
        let (Some(group), Some(until)) = (self.group, self.until) else {
            return;
        };
        if until.term <= now() && !self.term_sent {
            self.term();
            self.report(&Report::Late);
        }
        if until.kill <= now() && !self.kill_sent {
            self.kill_sent = true;
            signals::send(group, libc::SIGKILL);
        }
    }

    /// The timer, to when that is.
    fn set(&self, timer: &OwnedFd) -> Result<(), Error> {
        let until = self
            .until
            .filter(|_| self.group.is_some() && !self.kill_sent);
        let at = until.map_or(Duration::ZERO, |until| {
            if self.term_sent {
                until.kill
            } else {
                until.term
            }
        });
        // SAFETY: zeros are a value of this struct of integers; they switch the timer off.
        let mut time: libc::itimerspec = unsafe { std::mem::zeroed() };
        time.it_value.tv_sec = i64::try_from(at.as_secs()).map_err(Error::other)?;
        time.it_value.tv_nsec = i64::from(at.subsec_nanos());
        let absolute = libc::TFD_TIMER_ABSTIME;
        // SAFETY: a timer's descriptor, and a struct that is read.
        match unsafe {
            libc::timerfd_settime(timer.as_raw_fd(), absolute, &time, std::ptr::null_mut())
        } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// What became of the command: its status once it has ended. It is not waited for yet, so
    /// that its group's number stays its own.
    fn look(&mut self) -> Option<i32> {
        let group = self.group?;
        loop {
            let id = libc::id_t::try_from(group).ok()?;
            // SAFETY: zeros are a value of it, and it may be written.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            let stops = libc::WSTOPPED | libc::WNOHANG;
            // SAFETY: as above. Stops are taken, so that each is seen once.
            unsafe { libc::waitid(libc::P_PID, id, &mut info, stops) };
            // SAFETY: it is zero, or what waitid has filled in for a child.
            if unsafe { info.si_pid() } == 0 {
                break;
            }
            // SAFETY: as above.
            self.stopped(unsafe { info.si_status() });
        }
        let id = libc::id_t::try_from(group).ok()?;
        // SAFETY: zeros are a value of it, and it may be written.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let ends = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: as above.
        unsafe { libc::waitid(libc::P_PID, id, &mut info, ends) };
        // SAFETY: it is zero, or what waitid has filled in for a child.
        let (ended, status) = unsafe { (info.si_pid() != 0, info.si_status()) };
        let by_signal = info.si_code != libc::CLD_EXITED;
        ended.then_some(if by_signal { 128 + status } else { status })
    }

    fn stopped(&mut self, signal: i32) {
        match signal {
            // It wants to read from the terminal, or to set it.
            libc::SIGTTIN | libc::SIGTTOU => {
                self.wants_terminal = true;
                self.resume();
            }
            // Stopped by ctrl-z it would lose the lock; and so would `rlock`, for all of it.
            libc::SIGTSTP => {
                if let Some(group) = self.group {
                    signals::send(group, libc::SIGCONT);
                }
                self.report(&Report::Resumed);
            }
            _ => {}
        }
    }

    fn resume(&mut self) {
        if let (Some(group), Some(terminal)) = (self.group, &self.terminal)
            && terminal.is_ours()
            && terminal.give(group).is_ok()
        {
            self.wants_terminal = false;
            signals::send(group, libc::SIGCONT);
        }
    }

    /// What is left of the group would go on without the lock.
    fn end_rest(&mut self) {
        let Some(group) = self.group else { return };
        if let Some(terminal) = &self.terminal {
            terminal.take_back(group, self.term_sent);
        }
        signals::send(group, libc::SIGTERM);
        signals::send(group, libc::SIGCONT);
        // SAFETY: the child is there, and its status is not asked for.
        unsafe { libc::waitpid(group, std::ptr::null_mut(), 0) };
        let kill = self
            .until
            .map_or(now() + REST, |until| until.kill.min(now() + REST));
        while signals::is_there(group) && now() < kill {
            std::thread::sleep(Duration::from_millis(5));
        }
        if signals::is_there(group) {
            signals::send(group, libc::SIGKILL);
        }
    }
}

/// A descriptor that can be read when a child has changed.
fn children() -> Result<OwnedFd, Error> {
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

/// One that goes on while the machine is suspended.
fn timer() -> Result<OwnedFd, Error> {
    let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
    // SAFETY: takes numbers, and gives a new descriptor.
    unsafe { owned(libc::timerfd_create(libc::CLOCK_BOOTTIME, flags)) }
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

fn drain(fd: &OwnedFd) {
    let mut some = [0_u8; 1024];
    // SAFETY: the buffer may be written over its length.
    while unsafe { libc::read(fd.as_raw_fd(), some.as_mut_ptr().cast(), some.len()) } > 0 {}
}

/// Which of them can be read; none when the time is over (-1: for ever).
fn poll<const N: usize>(fds: [i32; N], patience_ms: i32) -> Result<[bool; N], Error> {
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
