//! The lock is held: the command runs, and the lease is renewed.

use std::io::{Error, ErrorKind};
use std::mem::ManuallyDrop;
use std::time::Duration;

use rlock_client::clock::now;
use rlock_client::{Backend, Hold, Locks, QuorumHold, Reason};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::time::{sleep, timeout};

use super::guard::Connected;
use super::words::{Order, Report, Until};
use super::{End, LAST_WORDS, Say, Signals, family, signals};
use crate::exit::{CANNOT_RUN, Failure, LOST, NO_COMMAND, USAGE};

const LOOK: Duration = Duration::from_secs(3);

/// A lease: of one server it is renewed here, and one by quorum renews itself.
pub enum Lock {
    Single(Hold, Locks),
    Quorum(QuorumHold),
}

impl Lock {
    pub fn token(&self) -> u64 {
        match self {
            Self::Single(hold, _) => hold.token(),
            Self::Quorum(hold) => hold.token(),
        }
    }

    fn owner(&self) -> &str {
        match self {
            Self::Single(hold, _) => hold.owner(),
            Self::Quorum(hold) => hold.owner(),
        }
    }

    /// When it is renewed, after that. Where nobody notifies of a loss that is what finds it.
    fn pause(&self, lease: Duration) -> Duration {
        let third = lease / 3;
        match self {
            Self::Single(_, locks) if locks.backend() != Some(Backend::Module) => third.min(LOOK),
            _ => third,
        }
    }

    /// When it was asked for, or renewed, last.
    fn asked(&self, lease: Duration) -> Duration {
        let left = match self {
            Self::Single(hold, _) => hold.remaining().unwrap_or_default(),
            Self::Quorum(hold) => hold.remaining(),
        };
        (now() + left).saturating_sub(lease)
    }

    async fn lost(&self) -> Reason {
        match self {
            Self::Single(hold, _) => hold.lost().await,
            Self::Quorum(hold) => hold.lost().await,
        }
    }

    async fn renew(&self, lease: Duration) -> Result<(), rlock_client::Error> {
        match self {
            Self::Single(hold, _) => hold.renew(lease).await,
            Self::Quorum(hold) => {
                // To see that it was renewed, and to see that soon.
                let before = hold.remaining();
                let begun = now();
                while hold.remaining() + (now() - begun) < before + lease / 10 {
                    sleep(lease / 50).await;
                }
                Ok(())
            }
        }
    }

    /// A RELEASE does not show whether it was held to the end, and after a connection that was
    /// cut nobody else has: a RENEW does. What a connection that is cut now leaves to be said
    /// is said by the next.
    ///
    /// `rest`: for so long it is kept, and nobody renews it any more.
    async fn release(self, lease: Duration, rest: Duration) -> Result<(), rlock_client::Error> {
        match self {
            Self::Single(hold, _) if !rest.is_zero() => {
                // Whatever becomes of this it is not released.
                let hold = ManuallyDrop::new(hold);
                hold.renew(rest).await
            }
            Self::Single(hold, locks) => {
                // It takes some time for a connection; another error is no reason to keep it.
                if let Err(error @ rlock_client::Error::Lost(_)) = hold.renew(lease).await {
                    return Err(error);
                }
                let end = hold.release().await;
                if matches!(end, Err(rlock_client::Error::Refused { .. })) {
                    // It would be refused again.
                    return end;
                }
                while !locks.is_connected() {
                    sleep(Duration::from_millis(20)).await;
                }
                locks.close().await;
                end
            }
            Self::Quorum(hold) => hold.release().await,
        }
    }
}

/// Runs the command by the guard, to its end.
pub async fn keep(
    lock: Lock,
    guard: Connected,
    (lease, at_least): (Duration, Option<Duration>),
    mut signals: Signals,
    say: &Say,
) -> Result<End, Failure> {
    guard.stream.set_nonblocking(true)?;
    let (reports, half) = UnixStream::from_std(guard.stream)?.into_split();
    let mut orders = Orders {
        half,
        guard: guard.id,
    };
    let mut reports = BufReader::new(reports).lines();
    let start = Order::Start {
        token: lock.token(),
        owner: lock.owner().into(),
        until: Until::of(lease, lock.asked(lease)),
    };
    orders.give(&start).await;
    let mut lost = None;
    let mut group = None;
    let status = {
        let renewing = renew(&lock, lease, say);
        let losing = lock.lost();
        tokio::pin!(renewing, losing);
        loop {
            tokio::select! {
                until = renewing.as_mut() => {
                    orders.give(&Order::Until(until)).await;
                    renewing.set(renew(&lock, lease, say));
                }
                reason = losing.as_mut(), if lost.is_none() => {
                    // Who reads the warning may take his time.
                    orders.give(&Order::End).await;
                    say.warn(&format!("the lock was lost: {reason}; the command is ended"));
                    lost = Some(reason);
                }
                signal = signals.any() => {
                    let passed = match signal {
                        libc::SIGCONT => Order::Continue,
                        signal => Order::Signal(signal),
                    };
                    orders.give(&passed).await;
                }
                line = reports.next_line() => match line?.as_deref().and_then(Report::parse) {
                    Some(Report::Started(started)) => group = Some(started),
                    Some(Report::Failed(error)) => break Err(Error::from_raw_os_error(error)),
                    Some(Report::Ended(status)) => break Ok(End::Code(status)),
                    Some(Report::Killed(signal)) => break Ok(End::Signal { signal, all: false }),
                    Some(Report::Interrupted(signal)) => break Ok(End::Signal { signal, all: true }),
                    Some(Report::Late) => {
                        say.warn("the lock could not be renewed for two thirds of its lease; the command is ended");
                        lost.get_or_insert(Reason::Lease);
                    }
                    Some(Report::Resumed) => {
                        say.warn("a command under a lock is not stopped by ctrl-z: it goes on");
                    }
                    None => return guard_gone(group, lock.asked(lease) + lease / 10 * 9).await,
                },
            }
        }
    };
    // What did not run may be run by somebody else.
    let until = at_least.filter(|_| status.is_ok()).unwrap_or_default();
    let rest = until.saturating_sub(now());
    let released = timeout(LAST_WORDS, lock.release(lease, rest)).await;
    match released {
        Ok(Err(rlock_client::Error::Lost(reason))) => _ = lost.get_or_insert(reason),
        Ok(Ok(())) => {}
        Ok(Err(error @ rlock_client::Error::Refused { .. })) if rest.is_zero() => {
            say.warn(&format!("the lock is kept for its lease: {error}"));
        }
        _ if rest.is_zero() => {}
        _ => say.warn("the lock could not be lengthened: it is kept for its lease alone"),
    }
    match (status, lost) {
        (Err(error), _) => Err(cannot_run(&error)),
        (Ok(_), Some(reason)) => Err(Failure::new(
            LOST,
            format!("the lock was lost ({reason}) before the command had ended"),
        )),
        (Ok(end), None) => Ok(end),
    }
}

/// Once, when its time has come; what came of it.
async fn renew(lock: &Lock, lease: Duration, say: &Say) -> Until {
    let at = lock.asked(lease) + lock.pause(lease);
    sleep(at.saturating_sub(now())).await;
    loop {
        match lock.renew(lease).await {
            Ok(()) => return Until::of(lease, lock.asked(lease)),
            // `lost` reports it.
            Err(rlock_client::Error::Lost(_)) => std::future::pending().await,
            Err(error) => {
                say.more(&format!("not renewed: {error}"));
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

struct Orders {
    half: OwnedWriteHalf,
    guard: i32,
}

impl Orders {
    async fn give(&mut self, order: &Order) {
        // If somebody has stopped it, it goes on: nobody else ends the command in time.
        signals::send_one(self.guard, libc::SIGCONT);
        // If the guard is gone the reports end too.
        _ = self.half.write_all(order.line().as_bytes()).await;
    }
}

fn cannot_run(error: &Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::new(NO_COMMAND, format!("the command: {error}")),
        _ => Failure::new(CANNOT_RUN, format!("the command: {error}")),
    }
}

/// Somebody has killed the guard. Without it the command must not go on. What came from the
/// guard is this process's now.
async fn guard_gone(group: Option<i32>, lease_ends: Duration) -> Result<End, Failure> {
    const REST: Duration = Duration::from_secs(2);
    for signal in [libc::SIGTERM, libc::SIGCONT] {
        match group {
            Some(group) => family::send(group, signal),
            // It had not said yet that the command runs.
            None => family::send_but(0, signal),
        }
    }
    let (rest, pause) = (now() + REST, Duration::from_millis(5));
    let kill = lease_ends.min(rest);
    while !family::reap() && now() < kill {
        sleep(pause).await;
    }
    while !family::reap() && now() < rest + REST {
        family::kill();
    }
    Err(Failure::new(
        USAGE,
        "the guard process is gone, so the command was ended",
    ))
}
