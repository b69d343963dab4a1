//! Sticky locks for programs without tokio.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::{call_when, wait};
use crate::error::{Error, Reason};
use crate::turn::within;

/// A sticky lock that is to be made: see [`StickyBuilder`](crate::StickyBuilder).
#[must_use = "nothing is made before `build`"]
#[derive(Clone, Debug)]
pub struct StickyBuilder(pub(super) crate::StickyBuilder);

impl StickyBuilder {
    as_in_async! {
        "StickyBuilder":
        idle(idle: Duration);
        wait(wait: Duration);
        lease(lease: Duration);
    }

    /// Makes it: see [`StickyBuilder::build`](crate::StickyBuilder::build).
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub fn build(self) -> Result<Sticky, Error> {
        self.0.build().map(Sticky)
    }
}

/// A lock that stays with this process between its uses: see [`Locks::sticky`](crate::Locks::sticky).
#[derive(Clone, Debug)]
pub struct Sticky(crate::Sticky);

impl Sticky {
    /// The key.
    pub fn key(&self) -> &str {
        self.0.key()
    }

    /// Runs `body` while this process has the lock and no other use of it is under way, on this thread: see
    /// [`Sticky::run`](crate::Sticky::run). If the lock is lost, `body` goes on, and can see it.
    ///
    /// ```no_run
    /// # fn write(entry: &str, token: u64) {}
    /// # fn example(sticky: rlock_client::blocking::Sticky) -> Result<(), rlock_client::Error> {
    /// for entry in ["a", "b"] {
    ///     sticky.run(|turn| {
    ///         write(entry, turn.token()?);
    ///         Ok::<_, rlock_client::Error>(())
    ///     })??;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Sticky::run`](crate::Sticky::run).
    pub fn run<T>(&self, body: impl FnOnce(&Use) -> T) -> Result<T, Error> {
        let mut turn = match self.0.begin() {
            Some(begun) => begun,
            None => wait(self.0.begin_in_line())?,
        };
        let used = Use {
            used: turn.given(),
            callbacks: Mutex::default(),
        };
        let done = within(turn.turn.id, || body(&used));
        let at = turn.heard_at().unwrap_or_else(|| wait(turn.prove()));
        let reason = turn.end(at);
        used.ended(reason);
        reason.map_or(Ok(done), |reason| Err(Error::Lost(reason)))
    }

    /// Releases it, and waits until the server has: see [`Sticky::close`](crate::Sticky::close).
    pub fn close(&self) {
        wait(self.0.close());
    }
}

/// One use of a [`Sticky`] lock, as its body has it.
#[derive(Debug)]
pub struct Use {
    used: crate::Use,
    /// What ends with the use.
    callbacks: Mutex<Vec<oneshot::Sender<Reason>>>,
}

impl Use {
    /// The key.
    pub fn key(&self) -> &str {
        self.used.key()
    }

    /// The owner: see [`Use::owner`](crate::Use::owner).
    pub fn owner(&self) -> &str {
        self.used.owner()
    }

    /// Whether the lock is lost.
    pub fn is_lost(&self) -> bool {
        self.used.is_lost()
    }

    /// Why it was lost, if it was.
    pub fn reason(&self) -> Option<Reason> {
        self.used.reason()
    }

    /// A fencing token of this use: see [`Use::token`](crate::Use::token).
    ///
    /// # Errors
    /// Those of [`Use::token`](crate::Use::token).
    pub fn token(&self) -> Result<u64, Error> {
        wait(self.used.token())
    }

    /// Calls `callback` when the lock is lost in this use, as that of a [`Hold`](super::Hold::on_lost). If the use ends
    /// otherwise, `callback` is dropped.
    pub fn on_lost(&self, callback: impl FnOnce(Reason) + Send + 'static) {
        // In a fork nobody is left who could call it.
        let Ok(session) = self.used.session() else {
            return;
        };
        let (over, is_over) = oneshot::channel();
        let lost = self.used.ended();
        let ended = async {
            tokio::select! {
                biased;
                reason = is_over => reason.ok(),
                reason = lost => reason,
            }
        };
        call_when(ended, callback, session.runtime());
        let callbacks = self.callbacks.lock();
        callbacks.unwrap_or_else(PoisonError::into_inner).push(over);
    }

    /// Who is not told of a loss is told of the end.
    fn ended(&self, reason: Option<Reason>) {
        let mut callbacks = self
            .callbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for over in callbacks.drain(..) {
            _ = reason.map(|reason| over.send(reason));
        }
    }
}
