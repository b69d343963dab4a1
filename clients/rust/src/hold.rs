//! A hold, as the program has it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::request::{Request, Wait};
use crate::session::{Session, apart};
use crate::state::State;
use crate::way::GiveWay;

struct Shared {
    id: u64,
    request: Arc<Request>,
    token: u64,
    session: Session,
    state: Arc<State>,
    /// When it was granted.
    since: Time,
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
    /// To whom it goes back.
    lender: Option<oneshot::Sender<Self>>,
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
            since: clock::now(),
            holds: AtomicUsize::new(1),
        };
        Self {
            shared: Arc::new(shared),
            over: false,
            lender: None,
        }
    }

    /// It goes back when it is released or dropped.
    pub(crate) fn lent(mut self) -> (Self, oneshot::Receiver<Self>) {
        let (lender, back) = oneshot::channel();
        self.lender = Some(lender);
        (self, back)
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
        self.shared.request.owner()
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
    pub fn lost(&self) -> impl Future<Output = Reason> + Send + 'static + use<> {
        State::lost(&self.shared.state)
    }

    /// For callbacks: none if it is released, or dropped, without having been lost.
    pub(crate) fn ended(&self) -> impl Future<Output = Option<Reason>> + Send + 'static + use<> {
        State::ended(&self.shared.state)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.reason().is_some()
    }

    /// Why it was lost, if it was.
    pub fn reason(&self) -> Option<Reason> {
        self.shared.state.reason()
    }

    /// Whether somebody waits whom the release of this hold would serve: a hint for work that can stop, or
    /// give way, between two pieces. It may come late, and be out of date. Who only tries does not count.
    ///
    /// The first use of this, or of [`wanted`](Hold::wanted), asks the server to say so, and does not wait for
    /// it: it is false at first, as a rule. Half a lease after the server has said it last it is false again. The
    /// server says it every third of the lease.
    ///
    /// It is false of a hold of several keys, and where the server has no module, or one that is too old for it.
    ///
    /// ```no_run
    /// # async fn work(part: u32) {}
    /// # async fn example(hold: rlock_client::Hold) -> Result<(), rlock_client::Error> {
    /// for part in 0..1_000 {
    ///     if hold.is_lost() || hold.is_wanted() {
    ///         break;
    ///     }
    ///     work(part).await;
    /// }
    /// hold.release().await
    /// # }
    /// ```
    pub fn is_wanted(&self) -> bool {
        self.ask_whether_wanted();
        self.shared.state.is_wanted()
    }

    /// Ends when [`is_wanted`](Hold::is_wanted) is true, at once if it is, with true; with false when the hold is
    /// over: lost, or released by the last that [`again`](Hold::again) gave.
    pub fn wanted(&self) -> impl Future<Output = bool> + Send + 'static + use<> {
        self.ask_whether_wanted();
        State::wanted(&self.shared.state)
    }

    fn ask_whether_wanted(&self) {
        let Shared {
            id, session, state, ..
        } = &*self.shared;
        if !state.ask() {
            session.want(*id);
        }
    }

    /// Until when a hold without watchdog is good, counted from now; none for one with it.
    pub fn remaining(&self) -> Option<Duration> {
        // Without the module this client keeps those too.
        let plain = !self.shared.request.watchdog;
        let deadline = self.shared.state.deadline().filter(|_| plain)?;
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
        let lease = clock::at_most_far(lease);
        let Shared { id, session, .. } = &*self.shared;
        let trying = async {
            loop {
                if let Some(reason) = self.reason() {
                    return Err(Error::Lost(reason));
                }
                match session.renew(*id, lease, fence).await {
                    // It is idempotent: it sets the same lease.
                    Err(Error::Connection(_)) => session.after(Duration::from_millis(50)).await,
                    end => return end,
                }
            }
        };
        let in_time = async {
            tokio::select! {
                biased;
                end = trying => end,
                () = session.after(session.timeout) => {
                    Err(Error::Connection("no reply to RENEW".into()))
                }
            }
        };
        apart(in_time).await
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
            lender: None,
        })
    }

    /// Releases it, and waits until the server has.
    ///
    /// If the connection breaks meanwhile it is over for the program all the same; the
    /// session notifies the server when it can.
    ///
    /// # Errors
    /// [`Error::Lost`] if it was lost before: the program was not alone for all that time.
    pub async fn release(mut self) -> Result<(), Error> {
        if self.over {
            return Ok(()); // it gave way in vain
        }
        if self.lender.is_some() {
            return self
                .reason()
                .map_or(Ok(()), |reason| Err(Error::Lost(reason)));
        }
        self.over = true;
        let Shared { id, session, .. } = &*self.shared;
        let reason = self.reason();
        let last = self.leave();
        let end = match reason {
            None if last => session.release(*id).await,
            _ => Ok(()),
        };
        // The session may have been notified of the loss meanwhile: it had nothing to release then.
        match self.reason() {
            Some(reason) => Err(Error::Lost(reason)),
            None => end,
        }
    }

    /// A long job that calls this between two pieces of its work lets the one who waits in: if somebody does
    /// ([`is_wanted`](Hold::is_wanted)), the lock is released, and asked for again behind them. Await it: it is true when
    /// the same hold holds again, with a new [`token`](Hold::token) and a whole lease, and
    /// [`max`](crate::Acquire::max) counted anew. It is false at once if nobody waits, or if it was granted less than
    /// 20 ms ago.
    ///
    /// ```no_run
    /// # async fn work(part: u32, token: u64) {}
    /// # async fn example(mut hold: rlock_client::Hold) -> Result<(), rlock_client::Error> {
    /// for part in 0..1_000 {
    ///     work(part, hold.token()).await;
    ///     if hold.give_way().await? {
    ///         println!("others had it; it may be another world");
    ///     }
    /// }
    /// hold.release().await
    /// # }
    /// ```
    pub fn give_way(&mut self) -> GiveWay<'_> {
        GiveWay::new(self)
    }

    /// Why it cannot give way, whoever waits.
    pub(crate) fn unfit_to_give_way(&self) -> Option<&'static str> {
        if self.keys().len() > 1 {
            return Some("a hold of several keys cannot give way");
        }
        let again = self.shared.holds.load(Ordering::Acquire) > 1;
        again.then_some("there is one by again: all of them would give way")
    }

    pub(crate) fn age(&self) -> Duration {
        clock::now().saturating_sub(self.shared.since)
    }

    /// Releases it, and ends with what it is again.
    pub(crate) fn released_for(
        &self,
        new: u64,
        wait: Wait,
    ) -> impl Future<Output = Result<Hold, Error>> + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        async move {
            let Shared {
                id, session, state, ..
            } = &*shared;
            session.give_way(*id, new, wait, Arc::clone(state)).await
        }
    }

    /// It has given way, and is this one now.
    pub(crate) fn come_back(&mut self, mut new: Self) {
        std::mem::swap(&mut self.shared, &mut new.shared);
        new.over = true;
        self.shared.state.come_back();
    }

    /// It is over, and the end of its scope says nothing of that.
    pub(crate) fn gave_way_in_vain(&mut self, new: u64, reason: Reason) {
        self.over = true;
        let Shared { session, state, .. } = &*self.shared;
        session.gave_way_in_vain(new, state, reason);
    }

    /// As [`lost`](Hold::lost), for who runs something under it that is told of it otherwise if it gave way in vain.
    pub(crate) fn lost_under(&self) -> impl Future<Output = Reason> + Send + 'static + use<> {
        let (lost, state) = (self.lost(), Arc::clone(&self.shared.state));
        async move {
            let reason = lost.await;
            State::back(&state).await;
            reason
        }
    }

    /// Whether this was the last.
    fn leave(&self) -> bool {
        self.shared.holds.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if let Some(lender) = self.lender.take() {
            let back = Self {
                shared: Arc::clone(&self.shared),
                over: false,
                lender: None,
            };
            // Who does not wait for it any more drops it.
            drop(lender.send(back));
        } else if self.leave() {
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
