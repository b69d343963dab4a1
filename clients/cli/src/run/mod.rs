//! `rlock run`: a command under a lock.
//!
//! Three processes: `rlock` has the lock and renews it; its guard ends the command in time
//! (`guard`); and the command, in a process group of its own.

mod events;
mod family;
mod guard;
mod keep;
mod progress;
pub mod signals;
mod terminal;
mod words;

use std::process::ExitCode;
use std::time::Duration;

use rlock_client::clock::now;
use rlock_client::{Error, Locks, Quorum};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{Backend, Cli, Run, Wait};
use crate::complain::complain;
use crate::exit::{Failure, Outcome, USAGE};
use crate::server;
use crate::time::show;
use keep::Lock;
use progress::Place;

/// Passed on to the command; before it runs they end `rlock`.
const PASSED: [i32; 6] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// For commands that are still pending: a server that is silent is not waited for, and leases end
/// by themselves.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub fn run(cli: &Cli, wanted: &Run) -> Outcome {
    if wanted.lease < Duration::from_secs(1) {
        return Err(Failure::usage(
            "a lease is at least 1s: there has to be time to end the command",
        ));
    }
    signals::unblock();
    // Before there is any other thread.
    let guard = guard::start(&wanted.key, &wanted.command)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let end = runtime.block_on(under_lock(cli, wanted, guard));
    // A look-up of a name may be under way, for which nobody waits.
    runtime.shutdown_background();
    end.map(End::exit)
}

/// What `rlock` ends with.
pub enum End {
    Code(i32),
    /// See `signals::die`.
    Signal {
        signal: i32,
        all: bool,
    },
}

impl End {
    /// The number is 128 and the signal's for a shell, whether `rlock` dies of it or not.
    fn exit(self) -> ExitCode {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal { signal, all } => {
                if signals::is_key(signal) {
                    signals::die(signal, all);
                }
                128 + signal
            }
        };
        ExitCode::from(u8::try_from(code).unwrap_or(USAGE))
    }
}

async fn under_lock(cli: &Cli, wanted: &Run, guard: guard::Connected) -> Result<End, Failure> {
    let mut signals = Signals::new()?;
    let say = Say {
        quiet: wanted.quiet,
        verbose: wanted.verbose,
    };
    let end = if wanted.quorum.is_empty() {
        at_one(cli, wanted, &mut signals).await
    } else {
        by_quorum(cli, wanted, &mut signals).await
    };
    let lock = match end {
        Ok(Ok(lock)) => lock,
        Ok(Err(Error::NotAcquired { .. })) => return Err(not_acquired(wanted)),
        Ok(Err(error)) => return Err(error.into()),
        Err(Ended::Signal(signal)) => return Ok(End::Signal { signal, all: false }),
        Err(Ended::Failed(failure)) => return Err(failure),
    };
    say.more(&format!("have {} with token {}", wanted.key, lock.token()));
    let until = wanted.at_least.map(|time| now() + time);
    keep::keep(lock, guard, (wanted.lease, until), signals, &say).await
}

/// Before there was an answer.
enum Ended {
    Signal(i32),
    Failed(Failure),
}

type Asked = Result<Result<Lock, Error>, Ended>;

async fn at_one(cli: &Cli, wanted: &Run, signals: &mut Signals) -> Asked {
    let client = server::client(&cli.url, &cli.tls).map_err(Ended::Failed)?;
    let mut locks = Locks::new(client.clone());
    if cli.backend == Backend::Module {
        locks = locks.require_module();
    }
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
    let owner = job.owner();
    let waiting = progress::waiting(
        wanted,
        Place::Server {
            client: &client,
            owner,
            locks: &locks,
        },
    );
    tokio::select! {
        end = ask => Ok(end.map(|hold| Lock::Single(hold, locks.clone()))),
        signal = signals.next() => {
            // Its wait ends, and a grant that crosses this is released.
            _ = tokio::time::timeout(LAST_WORDS, locks.close()).await;
            Err(Ended::Signal(signal))
        }
        never = waiting => match never {},
    }
}

async fn by_quorum(cli: &Cli, wanted: &Run, signals: &mut Signals) -> Asked {
    let clients = wanted
        .quorum
        .iter()
        .map(|url| server::client(url, &cli.tls));
    let clients = clients
        .collect::<Result<Vec<_>, _>>()
        .map_err(Ended::Failed)?;
    let mut quorum = Quorum::new(clients);
    if cli.backend == Backend::Module {
        quorum = quorum.require_module();
    }
    let mut ask = quorum.acquire(&wanted.key).lease(wanted.lease);
    ask = match wanted.wait {
        None => ask,
        Some(Wait::For(time)) => ask.wait(time),
        Some(Wait::Forever) => ask.wait_forever(),
    };
    let end = tokio::select! {
        end = ask.into_future() => Ok(end.map(Lock::Quorum)),
        signal = signals.next() => Err(Ended::Signal(signal)),
        never = progress::waiting(wanted, Place::Quorum(&quorum)) => match never {},
    };
    if !matches!(end, Ok(Ok(_))) {
        // What a minority has granted is released.
        _ = tokio::time::timeout(LAST_WORDS, quorum.close()).await;
    }
    end
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

/// What is said to people, on standard error.
struct Say {
    quiet: bool,
    verbose: bool,
}

impl Say {
    fn more(&self, text: &str) {
        if self.verbose {
            complain(text);
        }
    }

    fn warn(&self, text: &str) {
        if !self.quiet {
            complain(text);
        }
    }
}

struct Signals(Vec<(i32, Signal)>);

impl Signals {
    fn new() -> Result<Self, Failure> {
        let one = |number| Ok((number, signal(SignalKind::from_raw(number))?));
        // What is ignored, as by `nohup`, stays so: the command ignores it too.
        let wanted = |number: &i32| !signals::is_ignored(*number);
        let all = PASSED.into_iter().filter(wanted).chain([libc::SIGCONT]);
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
