//! `rlock run`: a command under a lock.
//!
//! Three processes: `rlock` has the lock and renews it; its guard ends the command in time
//! (`guard`); and the command, in a process group of its own.

mod guard;
mod keep;
mod progress;
mod signals;
mod terminal;
mod words;

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rlock_client::{Error, Locks};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{Run, Wait};
use crate::exit::{Failure, Outcome};
use crate::server;
use crate::time::show;
use keep::Lock;

/// Passed on to the command; before it runs they end `rlock`.
const PASSED: [i32; 6] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

pub fn run(url: &str, wanted: &Run) -> Outcome {
    if wanted.lease < std::time::Duration::from_secs(1) {
        return Err(Failure::usage(
            "a lease is at least 1s: there has to be time to end the command",
        ));
    }
    // Before there is any other thread.
    let guard = guard::start(&wanted.key, &wanted.command)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let end = runtime.block_on(under_lock(url, wanted, guard));
    // A look-up of a name may be under way, for which nobody waits.
    runtime.shutdown_background();
    end
}

async fn under_lock(url: &str, wanted: &Run, guard: UnixStream) -> Outcome {
    let mut signals = Signals::new()?;
    let say = Say {
        quiet: wanted.quiet,
        verbose: wanted.verbose,
    };
    let locks = Locks::new(server::client(url)?);
    let job = locks.job();
    let mut ask = locks
        .acquire(&wanted.key)
        .job(&job)
        .plain()
        .lease(wanted.lease);
    ask = match wanted.wait {
        None => ask,
        Some(Wait::For(time)) => ask.wait(time),
        Some(Wait::Forever) => ask.wait_forever(),
    };
    if wanted.read {
        ask = ask.read();
    }
    if let Some(limit) = wanted.limit {
        ask = ask.permits(limit, 1);
    }
    let waiting = progress::waiting(url, wanted, job.owner());
    let hold = tokio::select! {
        end = ask => end,
        signal = signals.next() => {
            // Its wait ends, and a grant that crosses this is released.
            locks.close().await;
            return Ok(by_signal(signal));
        }
        never = waiting => match never {},
    };
    let hold = hold.map_err(|error| match error {
        Error::NotAcquired => not_acquired(wanted),
        error => Failure::from(error),
    })?;
    say.more(&format!("have {} with token {}", wanted.key, hold.token()));
    keep::keep(Lock::Single(hold), guard, wanted.lease, signals, &say).await
}

fn not_acquired(wanted: &Run) -> Failure {
    let waited = match wanted.wait {
        Some(Wait::For(time)) => {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            format!(", and had it for all of {}", show(ms))
        }
        _ => String::new(),
    };
    let text = format!("{}: somebody else has the lock{waited}", wanted.key);
    Failure::new(crate::exit::NOT_ACQUIRED, text)
}

fn by_signal(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// What is said to people, on standard error.
struct Say {
    quiet: bool,
    verbose: bool,
}

impl Say {
    fn more(&self, text: &str) {
        if self.verbose {
            eprintln!("rlock: {text}");
        }
    }

    fn warn(&self, text: &str) {
        if !self.quiet {
            eprintln!("rlock: {text}");
        }
    }
}

struct Signals(Vec<(i32, Signal)>);

impl Signals {
    fn new() -> Result<Self, Failure> {
        let one = |number| Ok((number, signal(SignalKind::from_raw(number))?));
        let all = PASSED.into_iter().chain([libc::SIGCONT]);
        Ok(Self(all.map(one).collect::<std::io::Result<_>>()?))
    }

    /// The next that is to be passed on, or CONT.
    async fn any(&mut self) -> i32 {
        std::future::poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    async fn next(&mut self) -> i32 {
        loop {
            let number = self.any().await;
            if number != libc::SIGCONT {
                return number;
            }
        }
    }
}
