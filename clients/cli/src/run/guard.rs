//! The guard: a small process between `rlock` and the command, whose parent it is.
//!
//! It knows until when the lock is held, for `rlock` notifies it of each renewal; and it ends
//! the command and all that comes from it in time, whatever becomes of `rlock`: killed,
//! stopped, stuck.
//! It runs one thread and waits for three things: a word from `rlock`, a change of the
//! command's, and the time.

use std::ffi::OsString;
use std::io::{Error, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rlock_client::clock::now;

use super::events::{Timer, children, drain, poll};
use super::family;
use super::signals::{self, Before};
use super::terminal::Terminal;
use super::words::{Order, Report, Until};

/// What is left when the command has ended has so long to end by TERM.
const REST: Duration = Duration::from_secs(2);

struct Guard {
    rlock: UnixStream,
    received: Vec<u8>,
    terminal: Option<Terminal>,
    before: Before,
    command: Vec<OsString>,
    key: String,
    group: Option<i32>,
    until: Option<Until>,
    term_sent: bool,
    /// The command is stopped until it has the terminal.
    wants_terminal: bool,
    /// `rlock` was notified of a ctrl-z, and has sent nothing since. If it is stopped, its end of the
    /// pair would be full at last, and who wrote to it would wait.
    resumed_reported: bool,
}

/// Forks it off. There must be no other thread yet. Returns `rlock`'s end. If somebody kills the
/// guard, all that it looked after is `rlock`'s.
pub fn start(key: &str, command: &[OsString]) -> Result<Connected, Error> {
    let terminal = Terminal::find();
    family::adopt()?;
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
                received: Vec::new(),
                terminal,
                before,
                command: command.to_vec(),
                key: key.into(),
                group: None,
                until: None,
                term_sent: false,
                wants_terminal: false,
                resumed_reported: false,
            };
            let end = guard.run();
            std::process::exit(i32::from(end.is_err()));
        }
        id => Ok(Connected { stream: ours, id }),
    }
}

/// The guard, as `rlock` has it: a child.
pub struct Connected {
    pub stream: UnixStream,
    pub id: i32,
}

impl Guard {
    fn run(mut self) -> Result<(), Error> {
        family::adopt()?;
        let (children, timer) = (children()?, Timer::new()?);
        let mut gone = false;
        loop {
            timer.set(self.next_time())?;
            // poll passes over -1.
            let rlock = if gone { -1 } else { self.rlock.as_raw_fd() };
            // Shells do not say that they have put a running job to the foreground.
            // And who was forked while others were killed is killed too.
            let again = self.wants_terminal || self.is_over();
            let patience = if again { 200 } else { -1 };
            let ready = poll([rlock, children.as_raw_fd(), timer.as_raw_fd()], patience)?;
            if ready[0] && !self.receive() {
                // `rlock` is gone, and nobody renews.
                if self.group.is_none() {
                    return Ok(());
                }
                self.term();
                gone = true;
            }
            if ready[1] {
                drain(&children);
                if let Some(report) = self.look() {
                    let report = self.end_rest(report);
                    self.report(&report);
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
    fn receive(&mut self) -> bool {
        let mut some = [0; 4096];
        match self.rlock.read(&mut some) {
            Ok(0) => return false,
            Ok(length) => self.received.extend_from_slice(&some[..length]),
            Err(error) => return error.kind() == std::io::ErrorKind::Interrupted,
        }
        self.resumed_reported = false;
        while let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(order) = Order::parse(line.trim_end()) {
                self.obey(order);
            }
        }
        true
    }

    fn report(&mut self, report: &Report) {
        // If nobody reads it, nobody needs it.
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
                        // It receives nothing while it is stopped.
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
            family::send(group, libc::SIGTERM);
            // One that is stopped takes nothing else.
            family::send(group, libc::SIGCONT);
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
        if self.is_over() {
            signals::send(group, libc::SIGKILL);
            family::kill();
        }
    }

    /// Nobody may be left any more.
    fn is_over(&self) -> bool {
        self.group.is_some() && self.until.is_some_and(|until| until.kill <= now())
    }

    /// When there is something to do, if it was not done yet.
    fn next_time(&self) -> Option<Duration> {
        let until = self.until.filter(|_| self.group.is_some());
        let until = until.filter(|until| until.kill > now())?;
        Some(if self.term_sent {
            until.kill
        } else {
            until.term
        })
    }

    /// What became of the command, once it has ended. It is not waited for yet, so that its
    /// group's number stays its own.
    fn look(&mut self) -> Option<Report> {
        let group = self.group?;
        family::reap_but(group);
        let id = libc::id_t::try_from(group).ok()?;
        let wait = |how| {
            // SAFETY: zeros are a value of it, and it may be written. Then it is zero, or what
            // waitid has filled in for a child.
            unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                libc::waitid(libc::P_PID, id, &mut info, how | libc::WNOHANG);
                (info.si_pid() != 0).then(|| (info.si_code, info.si_status()))
            }
        };
        // Stops are taken, so that each is seen once.
        while let Some((_, signal)) = wait(libc::WSTOPPED) {
            self.stopped(signal);
        }
        let (code, status) = wait(libc::WEXITED | libc::WNOWAIT)?;
        Some(match code {
            libc::CLD_EXITED => Report::Ended(status),
            _ => Report::Killed(status),
        })
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
                if !self.resumed_reported {
                    self.resumed_reported = true;
                    self.report(&Report::Resumed);
                }
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

    /// What is left of all that came from the command would go on without the lock.
    fn end_rest(&mut self, report: Report) -> Report {
        let Some(group) = self.group else {
            return report;
        };
        let had_terminal = self.take_back(group);
        signals::send(group, libc::SIGTERM);
        signals::send(group, libc::SIGCONT);
        // SAFETY: the child is there, and its status is not asked for.
        unsafe { libc::waitpid(group, std::ptr::null_mut(), 0) };
        if !family::reap() {
            family::send_but(group, libc::SIGTERM);
            family::send_but(group, libc::SIGCONT);
        }
        let rest = now() + REST;
        let kill = self.until.map_or(rest, |until| until.kill.min(rest));
        while !family::reap() && now() < kill {
            sleep(Duration::from_millis(5));
        }
        // Who is of another user, or stuck in the kernel, is not waited for any longer.
        while !family::reap() && now() < kill.max(rest) + REST {
            family::kill();
        }
        match report {
            Report::Killed(signal) if had_terminal && signals::is_key(signal) => {
                Report::Interrupted(signal)
            }
            report => report,
        }
    }

    /// The terminal, from whoever of the command's has it. Whether that was one of its first
    /// group.
    fn take_back(&self, group: i32) -> bool {
        let Some(terminal) = &self.terminal else {
            return false;
        };
        let owner = terminal.owner();
        let is_its = |one: &family::One| one.group == owner;
        if owner == group
            || !signals::is_there(owner)
            || family::living().is_ok_and(|all| all.iter().any(is_its))
        {
            terminal.take_back(self.term_sent);
        }
        owner == group
    }
}
