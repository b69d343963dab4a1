//! Starting processes that do not outlive the tests.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Sender};
use std::sync::OnceLock;
use std::thread;

type Order = (Command, Sender<io::Result<Child>>);

/// Starts `command` such that the kernel kills it when the test runner dies.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    // The parent that PDEATHSIG speaks of is a thread, and that of a test ends
    // early; so all processes are started by one thread that stays.
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    // SAFETY: prctl is one system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(
            || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            },
        );
    }
    let (answer, started) = mpsc::channel();
    spawner.send((command, answer)).expect("the spawner runs");
    started.recv().expect("the spawner answers")
}

/// Sends a signal to a child that was not waited for yet.
pub fn signal(child: &Child, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(child.id()).expect("a pid");
    // SAFETY: kill has no memory effects here, and the pid is still the child's.
    let sent = unsafe { libc::kill(pid, signal) };
    assert_eq!(sent, 0, "signal {signal}: {}", io::Error::last_os_error());
}

/// A process that ends with the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
