//! A hold, as the program has it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::request::Request;
use crate::session::Session;

/// What the session and the hold both see.
#[derive(Debug)]
pub(crate) struct State {
    lost: watch::Sender<Option<Reason>>,
    /// ns of the clock; `u64::MAX` when it has none.
    deadline: AtomicU64,
}

impl State {
    pub fn new(deadline: Option<Time>) -> Self {
        let state = Self {
            lost: watch::Sender::new(None),
            deadline: AtomicU64::new(u64::MAX),
        };
        state.set_deadline(deadline);
        state
    }

    pub fn set_deadline(&self, deadline: Option<Time>) {
        let ns = deadline.and_then(|time| u64::try_from(time.as_nanos()).ok());
        let ns = ns.unwrap_or(u64::MAX);
        self.deadline.store(ns, Ordering::Release);
    }

    pub fn deadline(&self) -> Option<Time> {
        let ns = self.deadline.load(Ordering::Acquire);
        (ns != u64::MAX).then(|| Duration::from_nanos(ns))
    }

    /// The first reason stays.
    pub fn lose(&self, reason: Reason) {
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            lost.get_or_insert(reason);
            first
        });
    }

    pub fn lost(this: &Arc<Self>) -> impl Future<Output = Reason> + Send + 'static {
        let mut lost = this.lost.subscribe();
        let state = Arc::clone(this);
        async move {
            if let Some(reason) = state.reason() {
                return reason;
            }
            // The sender is in `state`.
            let told = lost.wait_for(Option::is_some).await.ok();
            told.and_then(|told| *told).unwrap_or(Reason::Closed)
        }
    }

    pub fn reason(&self) -> Option<Reason> {
        let told = *self.lost.borrow();
        if told.is_none() && self.deadline().is_some_and(|at| at <= clock::now()) {
            // The machine may have slept over it, and timers with it.
            self.lose(Reason::Lease);
        }
        *self.lost.borrow()
    }
}

struct Shared {
    id: u64,
    request: Arc<Request>,
    token: u64,
    session: Session,
    state: Arc<State>,
    holds: AtomicUsize,
}

/// A lock that this program has, until it is released, dropped or lost.
///
/// Dropping it releases it in the background. To know
/// that the lock was held to the end, call [`release`](Hold::release).
#[must_use = "a hold that is dropped is released"]
pub struct Hold {
    shared: Arc<Shared>,
    over: bool,
}

impl Hold {
    pub(crate) fn new(
        id: u64,
        request: Arc<Request>,
        token: u64,
        session: Session,
        state: Arc<State>,
    ) -> Self {
        let shared = Shared {
            id,
            request,
            token,
            session,
            state,
            holds: AtomicUsize::new(1),
        };
        Self {
            shared: Arc::new(shared),
            over: false,
        }
    }

    /// The fencing token: greater than that of every hold of its lock before. Have storage refuse a
    /// write with a smaller one than it has seen.
    pub fn token(&self) -> u64 {
        self.shared.token
    }

    /// The key; of several the first.
    pub fn key(&self) -> &str {
        self.keys().first().map_or("", String::as_str)
    }

    /// All keys that were taken together.
    pub fn keys(&self) -> &[String] {
        &self.shared.request.keys
    }

    /// The owner, as the server and `RLOCK.INFO` know it.
    pub fn owner(&self) -> &str {
        &self.shared.request.owner
    }

    /// Ends when the hold is lost, with the reason. Once lost it is lost for good.
    ///
    /// ```no_run
    /// # async fn work() {}
    /// # async fn example(hold: rlock_client::Hold) {
    /// tokio::select! {
    ///     () = work() => {}
    ///     reason = hold.lost() => eprintln!("stopped: the lock was lost ({reason})"),
    /// }
    /// # }
    /// ```
    pub fn lost(&self) -> impl Future<Output = Reason> + Send + 'static {
        State::lost(&self.shared.state)
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.reason().is_some()
    }

    /// Why it was lost, if it was.
    pub fn reason(&self) -> Option<Reason> {
        self.shared.state.reason()
    }

    /// Until when a hold without watchdog is good, counted from now; none for one with it.
    pub fn remaining(&self) -> Option<Duration> {
        let deadline = self.shared.state.deadline()?;
        Some(deadline.saturating_sub(clock::now()))
    }

    /// Sets the lease to so long from now, shorter too.
    ///
    /// # Errors
    /// [`Error::Lost`] if it is not held any more, [`Error::Connection`] if the server did
    /// not reply in time.
    pub async fn renew(&self, lease: Duration) -> Result<(), Error> {
        self.renew_and(lease, None).await.map(drop)
    }

    /// `fence`: see `Request::renew`.
    pub(crate) async fn renew_and(
        &self,
        lease: Duration,
        fence: Option<u64>,
    ) -> Result<u64, Error> {
        if lease.is_zero() {
            return Err(Error::Argument("a lease is longer than 0".into()));
        }
        let Shared { id, session, .. } = &*self.shared;
        let trying = async {
            loop {
                if let Some(reason) = self.reason() {
                    return Err(Error::Lost(reason));
                }
                match session.renew(*id, lease, fence).await {
                    // It may be said again: it sets the same lease.
                    Err(Error::Connection(_)) if !session.is_over() => {
                        sleep(Duration::from_millis(50)).await;
                    }
                    end => return end,
                }
            }
        };
        let late = || Err(Error::Connection("no reply to RENEW".into()));
        timeout(session.timeout, trying)
            .await
            .unwrap_or_else(|_| late())
    }

    /// Of a hold without watchdog.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.shared.state.deadline()
    }

    /// One more hold of the same lock, for a part of the same work. The lock is released
    /// with the last of them.
    ///
    /// # Errors
    /// [`Error::Lost`] if it was lost.
    pub fn again(&self) -> Result<Hold, Error> {
        if let Some(reason) = self.reason() {
            return Err(Error::Lost(reason));
        }
        self.shared.holds.fetch_add(1, Ordering::AcqRel);
        Ok(Self {
            shared: Arc::clone(&self.shared),
            over: false,
        })
    }

    /// Releases it, and waits until the server has.
    ///
    /// If the connection breaks meanwhile it is over for the program all the same; the
    /// session tells the server when it can.
    ///
    /// # Errors
    /// [`Error::Lost`] if it was lost before: the program was not alone for all that time.
    pub async fn release(mut self) -> Result<(), Error> {
        self.over = true;
        let Shared { id, session, .. } = &*self.shared;
        if let Some(reason) = self.reason() {
            self.leave();
            return Err(Error::Lost(reason));
        }
        if !self.leave() {
            return Ok(());
        }
        session.release(*id).await
    }

    /// Whether this was the last.
    fn leave(&self) -> bool {
        let last = self.shared.holds.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && let Some(place) = &self.shared.request.place {
            place.leave();
        }
        last
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.over && self.leave() {
            self.shared.session.let_go(self.shared.id);
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("keys", &self.keys())
            .field("token", &self.token())
            .field("owner", &self.owner())
            .field("lost", &self.reason())
            .finish()
    }
}
