//! A lock that stays with the process between its uses.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use crate::acquire::fresh_id;
use crate::clock::at_most_far;
use crate::error::Error;
use crate::locks::Locks;
use crate::process;
use crate::request::{LEASE, wrong_with};
use crate::session::{Session, apart};
use crate::state::State;
use crate::turn::{Turn, is_within, within};
use crate::using::{InUse, Use};

/// No lock stays for longer than that while nobody uses it.
const IDLE: Duration = Duration::from_secs(1);

const WAIT: Duration = Duration::from_secs(30);

/// A [sticky lock](Locks::sticky) that is to be made: set what you want, and call
/// [`build`](StickyBuilder::build).
#[must_use = "nothing is made before `build`"]
#[derive(Clone, Debug)]
pub struct StickyBuilder {
    locks: Locks,
    key: String,
    idle: Duration,
    wait: Duration,
    lease: Duration,
}

impl StickyBuilder {
    pub(crate) fn new(locks: Locks, key: String) -> Self {
        Self {
            locks,
            key,
            idle: IDLE,
            wait: WAIT,
            lease: LEASE,
        }
    }

    /// The lock is released when nobody has used it for so long (1 s, which is the most).
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// How long a use waits for the lock, and for other uses of this process (30 s).
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = at_most_far(wait);
        self
    }

    /// As that of [`Acquire::lease`](crate::Acquire::lease) (10 s).
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = at_most_far(lease);
        self
    }

    /// Makes it. Nothing is said to the server before its first use.
    ///
    /// # Errors
    /// [`Error::Argument`] if the key is empty or too long, if `idle` is 0 or more than 1 s, and if the lease is 0.
    pub fn build(self) -> Result<Sticky, Error> {
        let wrong = wrong_with(std::slice::from_ref(&self.key));
        let idle = self.idle.is_zero() || self.idle > IDLE;
        let idle = idle.then_some("idle is more than 0, and at most 1 s");
        let lease = self.lease.is_zero().then_some("a lease is longer than 0");
        if let Some(text) = wrong.or(idle).or(lease) {
            return Err(Error::Argument(text.into()));
        }
        let shared = Shared {
            turn: Arc::new(Turn::new(self.key, self.lease, self.idle)),
            forked: OnceLock::new(),
            locks: self.locks,
            wait: self.wait,
        };
        Ok(Sticky(Arc::new(shared)))
    }
}

/// A lock that stays with this process between its uses: see [`Locks::sticky`]. Clone it freely: clones are the same
/// lock.
#[derive(Clone)]
pub struct Sticky(Arc<Shared>);

struct Shared {
    locks: Locks,
    wait: Duration,
    /// Of the process that this was made in, and of one that was forked from it.
    turn: Arc<Turn>,
    forked: OnceLock<Arc<Turn>>,
}

impl Shared {
    fn turn(&self) -> &Arc<Turn> {
        if self.turn.process == process::id() {
            return &self.turn;
        }
        self.forked.get_or_init(|| Arc::new(self.turn.anew()))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // In a fork of it the sessions of this one are none.
        let turn = self.turn();
        if let Some(session) = self.locks.session_if_any() {
            session.drop_stay(turn.id);
        }
    }
}

impl Sticky {
    /// The key.
    pub fn key(&self) -> &str {
        &self.0.turn.key
    }

    /// Runs `body` while this process has the lock and no other use of it is under way. Uses come one after the other, in
    /// their order. While the lock is here and nobody else wants it that needs no word to the server.
    ///
    /// If the lock is lost, `body` is dropped at its next `.await`.
    ///
    /// A use that needs no word to the server does not yield: a loop of nothing else keeps its thread of the runtime.
    ///
    /// ```no_run
    /// # async fn write(entry: &str) {}
    /// # async fn example(sticky: rlock_client::Sticky) -> Result<(), rlock_client::Error> {
    /// for entry in ["a", "b"] {
    ///     sticky.run(|_| write(entry)).await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAcquired`] if its time was over before it could begin. [`Error::UseWithin`] at once within a use of the
    /// same lock. [`Error::Lost`] if the client learnt before `body` had ended that the lock is lost. [`Error::Refused`] and
    /// [`Error::Connection`], as of an [`Acquire`](crate::Acquire).
    pub async fn run<T, F: Future<Output = T>>(
        &self,
        body: impl FnOnce(Use) -> F,
    ) -> Result<T, Error> {
        let mut turn = match self.begin() {
            Some(begun) => begun,
            None => self.begin_in_line().await?,
        };
        let id = turn.turn.id;
        let done = {
            let used = turn.given();
            let mut body = pin!(within(id, || body(used)));
            let mut lost = None;
            std::future::poll_fn(|context| {
                // The first time it has just begun.
                if let Some(lost) = lost.as_mut().map(std::pin::Pin::as_mut)
                    && let Poll::Ready(reason) = Future::poll(lost, context)
                {
                    return Poll::Ready(Err(Error::Lost(reason)));
                }
                let polled = within(id, || body.as_mut().poll(context));
                if polled.is_pending() && lost.is_none() {
                    let mut new = Box::pin(State::lost(&turn.acquired.state));
                    // Who waits for it is to be called.
                    if let Poll::Ready(reason) = new.as_mut().poll(context) {
                        return Poll::Ready(Err(Error::Lost(reason)));
                    }
                    lost = Some(new);
                }
                polled.map(Ok)
            })
            .await?
        };
        let at = match turn.heard_at() {
            Some(at) => at,
            None => turn.prove().await,
        };
        turn.end(at)
            .map_or(Ok(done), |reason| Err(Error::Lost(reason)))
    }

    /// Releases it, and waits until the server has; if a use is under way it is released at the end of that. No use begins any
    /// more: further ones, and those that wait, fail with [`Error::Connection`]. So it is for all clones.
    pub async fn close(&self) {
        let Ok(session) = self.0.locks.session() else {
            return;
        };
        apart(async {
            tokio::select! {
                biased;
                () = session.close_stay(self.0.turn()) => {}
                () = session.after(session.timeout) => {}
            }
        })
        .await;
    }

    /// Without a word to anybody.
    pub(crate) fn begin(&self) -> Option<InUse<'_>> {
        let (turn, number) = (self.0.turn(), fresh_id());
        let acquired = turn.begin(number)?;
        Some(InUse::new(self, turn, acquired, number))
    }

    pub(crate) async fn begin_in_line(&self) -> Result<InUse<'_>, Error> {
        let (turn, number) = (self.0.turn(), fresh_id());
        if is_within(turn.id) {
            return Err(Error::UseWithin(turn.key.clone()));
        }
        let session = self.0.locks.session()?;
        let mut waits = Waits {
            session: Some(session),
            id: turn.id,
            number,
        };
        let acquired = session.begin_use(turn, number, self.0.wait).await?;
        waits.session = None;
        Ok(InUse::new(self, turn, acquired, number))
    }

    pub(crate) fn session(&self) -> Result<&Session, Error> {
        self.0.locks.session()
    }
}

impl fmt::Debug for Sticky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sticky").field("key", &self.key()).finish()
    }
}

/// Leaves the line if the program stops waiting, or gives back what it was just given.
struct Waits<'a> {
    session: Option<&'a Session>,
    id: u64,
    number: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session {
            session.leave_use(self.id, self.number);
        }
    }
}
