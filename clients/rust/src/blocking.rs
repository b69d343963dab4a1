//! The same for programs without tokio: each call blocks its thread.
//!
//! It waits on the thread that calls, and can be called on any: in a callback, in a runtime
//! (whose thread it keeps as long as it takes), in `Drop`.
//!
//! ```no_run
//! use std::time::Duration;
//! use rlock_client::blocking::Locks;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = Locks::new(redis::Client::open("redis://127.0.0.1/")?);
//! let hold = locks.acquire("jobs").wait(Duration::from_secs(10)).get()?;
//! for part in 0..100 {
//!     if hold.is_lost() {
//!         break;
//!     }
//!     println!("part {part}, token {}", hold.token());
//! }
//! hold.release()?;
//! # Ok(()) }
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use redis::Client;
use tokio::runtime::Handle;

use crate::backend::Backend;
use crate::error::{Error, Reason};
use crate::job::Job;
use crate::session::apart;
pub use sticky::{Sticky, StickyBuilder, Use};

macro_rules! as_in_async {
    ($of:literal: $($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("See [`", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
            pub fn $name(mut self, $($argument: $type),*) -> Self {
                self.0 = self.0.$name($($argument),*);
                self
            }
        )*
    };
}

mod sticky;

/// On this thread. Nothing of it has to be polled for others to go on.
fn wait<T>(task: impl Future<Output = T>) -> T {
    struct Parked(Thread);
    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut task = pin!(task);
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

/// Calls it on a thread of its own if there is a reason in the end, else drops it there.
fn call_when(
    ended: impl Future<Output = Option<Reason>> + Send + 'static,
    callback: impl FnOnce(Reason) + Send + 'static,
    runtime: &Handle,
) {
    runtime.spawn(async move {
        let reason = ended.await;
        // To drop it may take its time too.
        let callback = Arc::new(Mutex::new(Some(move || _ = reason.map(callback))));
        loop {
            let callback = Arc::clone(&callback);
            let call = move || {
                let callback = callback
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                callback.into_iter().for_each(|call| call());
            };
            let begun = || drop(tokio::task::spawn_blocking(call));
            // It panics where the system gives no thread.
            if catch_unwind(AssertUnwindSafe(begun)).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
}

/// The locks of one server, or of a cluster: see [`Locks`](crate::Locks).
#[derive(Clone, Debug)]
pub struct Locks(crate::Locks);

impl Locks {
    /// With the address, the database, the credentials and the TLS of `client`.
    pub fn new(client: Client) -> Self {
        Self(crate::Locks::new(client))
    }

    /// See [`Locks::open`](crate::Locks::open).
    ///
    /// # Errors
    /// [`Error::Argument`] if it is no such URL.
    pub fn open(url: &str) -> Result<Self, Error> {
        crate::Locks::open(url).map(Self)
    }

    /// See [`Locks::with_timeout`](crate::Locks::with_timeout).
    pub fn with_timeout(client: Client, timeout: Duration) -> Self {
        Self(crate::Locks::with_timeout(client, timeout))
    }

    /// See [`Locks::cluster`](crate::Locks::cluster).
    pub fn cluster(nodes: impl IntoIterator<Item = Client>) -> Self {
        Self(crate::Locks::cluster(nodes))
    }

    /// See [`Locks::require_module`](crate::Locks::require_module).
    pub fn require_module(self) -> Self {
        Self(self.0.require_module())
    }

    /// See [`Locks::patience`](crate::Locks::patience).
    ///
    /// # Errors
    /// [`Error::Argument`] if it is 0.
    pub fn patience(self, patience: impl Into<Option<Duration>>) -> Result<Self, Error> {
        self.0.patience(patience).map(Self)
    }

    /// What the server has: see [`Locks::backend`](crate::Locks::backend).
    pub fn backend(&self) -> Option<Backend> {
        self.0.backend()
    }

    /// Asks for a lock: set what you want, and call [`get`](Acquire::get).
    pub fn acquire(&self, key: impl Into<String>) -> Acquire {
        Acquire(self.0.acquire(key))
    }

    /// Asks for several locks, all or none.
    pub fn acquire_many<K: Into<String>>(&self, keys: impl IntoIterator<Item = K>) -> Acquire {
        Acquire(self.0.acquire_many(keys))
    }

    /// A lock that stays with this process between its uses: see [`Locks::sticky`](crate::Locks::sticky).
    pub fn sticky(&self, key: impl Into<String>) -> StickyBuilder {
        StickyBuilder(self.0.sticky(key))
    }

    /// A new job: a piece of work that takes several locks.
    pub fn job(&self) -> Job {
        self.0.job()
    }

    /// Releases every hold, ends every wait and closes the connection: see
    /// [`Locks::close`](crate::Locks::close).
    pub fn close(&self) {
        wait(self.0.close());
    }
}

/// A lock that is asked for: see [`Acquire`](crate::Acquire).
#[must_use = "nothing is asked for before `get`"]
#[derive(Clone, Debug)]
pub struct Acquire(crate::Acquire);

impl Acquire {
    as_in_async! {
        "Acquire":
        wait(time: Duration);
        wait_forever();
        lease(lease: Duration);
        max(max: Duration);
        read();
        write();
        permits(limit: u32, permits: u32);
        job(job: &Job);
        acks(n: u32, within: Duration);
        plain();
    }

    /// Asks, and waits in the queue if it is to.
    ///
    /// # Errors
    /// Those of awaiting an [`Acquire`](crate::Acquire).
    pub fn get(self) -> Result<Hold, Error> {
        wait(self.0.into_future()).map(Hold)
    }
}

/// A lock that this program has: see [`Hold`](crate::Hold). Dropping it releases it.
#[must_use = "a hold that is dropped is released"]
#[derive(Debug)]
pub struct Hold(crate::Hold);

impl Hold {
    /// The fencing token.
    pub fn token(&self) -> u64 {
        self.0.token()
    }

    /// The key; of several the first.
    pub fn key(&self) -> &str {
        self.0.key()
    }

    /// All keys that were taken together.
    pub fn keys(&self) -> &[String] {
        self.0.keys()
    }

    /// The owner, as the server knows it.
    pub fn owner(&self) -> &str {
        self.0.owner()
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Why it was lost, if it was.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason()
    }

    /// Whether somebody waits whom its release would serve: see [`Hold::is_wanted`](crate::Hold::is_wanted).
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    /// Waits for that for at most so long. False if nobody has begun to wait by then, or if it is over.
    pub fn wanted_within(&self, time: Duration) -> bool {
        let wanted = self.0.wanted();
        let session = self.0.session();
        wait(apart(async {
            tokio::select! {
                biased;
                wanted = wanted => wanted,
                () = session.after(time) => false,
            }
        }))
    }

    /// Waits for that, or until it is over, which is false: see [`Hold::wanted`](crate::Hold::wanted).
    pub fn wanted(&self) -> bool {
        wait(self.0.wanted())
    }

    /// Calls `callback` on a thread for such callbacks when the hold is lost. It may do there what it
    /// likes, and for as long: each has a thread of its own while it runs. If the hold is released
    /// without having been lost, `callback` is dropped.
    pub fn on_lost(&self, callback: impl FnOnce(Reason) + Send + 'static) {
        call_when(self.0.ended(), callback, self.0.session().runtime());
    }

    /// Lets whoever waits in, and has the lock again behind them: see [`Hold::give_way`](crate::Hold::give_way). Call
    /// [`get`](GiveWay::get).
    pub fn give_way(&mut self) -> GiveWay<'_> {
        GiveWay(self.0.give_way())
    }

    /// One more hold of the same lock: see [`Hold::again`](crate::Hold::again).
    ///
    /// # Errors
    /// [`Error::Lost`] if it was lost.
    pub fn again(&self) -> Result<Self, Error> {
        self.0.again().map(Self)
    }

    /// Sets the lease to so long from now, shorter too.
    ///
    /// # Errors
    /// Those of [`Hold::renew`](crate::Hold::renew).
    pub fn renew(&self, lease: Duration) -> Result<(), Error> {
        wait(self.0.renew(lease))
    }

    /// Releases it, and waits until the server has.
    ///
    /// # Errors
    /// Those of [`Hold::release`](crate::Hold::release).
    pub fn release(self) -> Result<(), Error> {
        wait(self.0.release())
    }
}

/// A hold that is to give way: see [`GiveWay`](crate::GiveWay).
#[must_use = "nothing is done before `get`"]
#[derive(Debug)]
pub struct GiveWay<'a>(crate::GiveWay<'a>);

impl GiveWay<'_> {
    as_in_async! {
        "GiveWay":
        wait(time: Duration);
        least(age: Duration);
    }

    /// Gives way if somebody waits, and waits until it is a hold again.
    ///
    /// # Errors
    /// Those of awaiting a [`GiveWay`](crate::GiveWay).
    pub fn get(self) -> Result<bool, Error> {
        wait(self.0.into_future())
    }
}
