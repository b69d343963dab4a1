//! Asking for a lock.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use crate::clock::at_most_far;
use crate::error::Error;
use crate::hold::Hold;
use crate::job::{Job, fresh_owner};
use crate::locks::Locks;
use crate::request::{LEASE, Mode, Request, Wait};
use crate::session::Session;

/// A lock that is asked for: `.await` it, or give it to [`run`](Acquire::run).
///
/// Dropping the future of it ends the wait on the server too; a grant that is on its way is
/// released.
#[must_use = "nothing is asked for before it is awaited"]
#[derive(Clone, Debug)]
pub struct Acquire {
    locks: Locks,
    keys: Vec<String>,
    wait: Wait,
    lease: Duration,
    mode: Mode,
    watchdog: bool,
    max: Option<Duration>,
    acks: Option<(u32, Duration)>,
    job: Option<Job>,
    /// Of a quorum's attempt, at each of its servers.
    owner: Option<String>,
}

impl Acquire {
    pub(crate) fn new(locks: Locks, keys: Vec<String>) -> Self {
        Self {
            locks,
            keys,
            wait: Wait::Once,
            lease: LEASE,
            mode: Mode::Plain,
            watchdog: true,
            max: None,
            acks: None,
            job: None,
            owner: None,
        }
    }

    /// Waits for at most so long. Without it the request does not wait.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = Wait::at_most(time);
        self
    }

    /// Waits for as long as it takes.
    pub fn wait_forever(mut self) -> Self {
        self.wait = Wait::Forever;
        self
    }

    /// How long the hold lasts without renewal (10 s). The server renews it by itself as
    /// long as the connection is open, but for [`plain`](Acquire::plain) ones; without the module
    /// these [`Locks`] do.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = at_most_far(lease);
        self
    }

    /// Bounds the whole hold: after so long it is released, and lost with
    /// [`Reason::Max`](crate::Reason::Max).
    pub fn max(mut self, max: Duration) -> Self {
        self.max = Some(at_most_far(max));
        self
    }

    /// Beside other readers.
    pub fn read(mut self) -> Self {
        self.mode = Mode::Read;
        self
    }

    /// Alone, on a lock that others read.
    pub fn write(mut self) -> Self {
        self.mode = Mode::Write;
        self
    }

    /// `permits` of a lock that has `limit` of them. All requests for it name the same limit.
    pub fn permits(mut self, limit: u32, permits: u32) -> Self {
        self.mode = Mode::Permits { limit, permits };
        self
    }

    /// As a part of this job.
    pub fn job(mut self, job: &Job) -> Self {
        self.job = Some(job.clone());
        self
    }

    /// The hold is given to the program when `n` replicas have it; if they do not within
    /// that time it is released, and the request fails with [`Error::Refused`]
    /// (`NOREPLICAS`).
    pub fn acks(mut self, n: u32, within: Duration) -> Self {
        self.acks = Some((n, at_most_far(within)));
        self
    }

    /// Without watchdog: the hold outlives its connection, and ends with its lease unless
    /// [`Hold::renew`] is called.
    pub fn plain(mut self) -> Self {
        self.watchdog = false;
        self
    }

    pub(crate) fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Runs `body` under the lock, and releases it. If the lock is lost, `body` is dropped
    /// at its next `.await`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn work(token: u64) -> u32 { 7 }
    /// # async fn example(locks: rlock_client::Locks) -> Result<(), rlock_client::Error> {
    /// let done = locks
    ///     .acquire("jobs")
    ///     .wait(Duration::from_secs(10))
    ///     .run(|hold| async move { work(hold.token()).await })
    ///     .await?;
    /// # assert_eq!(done, 7); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of asking for it; and [`Error::Lost`] if it was lost before `body` had ended
    /// and the lock was released.
    pub async fn run<T, F: Future<Output = T>>(
        self,
        body: impl FnOnce(Hold) -> F,
    ) -> Result<T, Error> {
        let hold = self.await?;
        let lost = hold.lost_under();
        let (hold, mut back) = hold.lent();
        let done = {
            let (mut body, mut lost) = (pin!(body(hold)), pin!(lost));
            // `select!` has the budget of tokio's tasks.
            std::future::poll_fn(|context| match lost.as_mut().poll(context) {
                Poll::Ready(reason) => Poll::Ready(Err(Error::Lost(reason))),
                Poll::Pending => body.as_mut().poll(context).map(Ok),
            })
            .await?
        };
        // It is over, or somewhere else still, if it is not back.
        if let Ok(hold) = back.try_recv() {
            hold.release().await?;
        }
        Ok(done)
    }

    async fn ask(self) -> Result<Hold, Error> {
        let place = |job: &Job| job.take(&self.keys);
        let mut request = Request {
            in_quorum: self.owner.is_some(),
            owner: match (&self.job, self.owner) {
                (Some(job), _) => job.owner().into(),
                (None, owner) => owner.unwrap_or_else(fresh_owner),
            },
            own: OnceLock::new(),
            stands_as: OnceLock::new(),
            place: None,
            keys: Vec::new(),
            lease: self.lease,
            wait: self.wait,
            mode: self.mode,
            watchdog: self.watchdog,
            max: self.max,
            acks: self.acks,
        };
        request.keys.clone_from(&self.keys);
        request.check()?;
        self.locks.check(&request.keys)?;
        request.place = self.job.as_ref().map(place).transpose()?;
        let (request, session) = (Arc::new(request), self.locks.session()?.clone());
        let id = fresh_id();
        let mut wanted = Wanted {
            id,
            session: Some(session.clone()),
        };
        let end = session.acquire(id, request).await;
        wanted.session = None;
        end
    }
}

/// Of a request, and of the hold that it becomes.
pub(crate) fn fresh_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(1);
    IDS.fetch_add(1, Ordering::Relaxed)
}

/// Cancels the request if the program stops waiting.
struct Wanted {
    id: u64,
    session: Option<Session>,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.cancel(self.id);
        }
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Hold, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// # Errors
    /// [`Error::NotAcquired`], [`Error::Deadlock`], [`Error::HeldByJob`], [`Error::Refused`],
    /// [`Error::Connection`] and, for what cannot be asked for, [`Error::Argument`].
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.ask())
    }
}
