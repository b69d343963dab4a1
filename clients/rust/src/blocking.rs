//! The same for programs without tokio: each call blocks its thread.
//!
//! The connection is served by a thread of its own.
//!
//! ```no_run
//! use std::time::Duration;
//! use rlock_client::blocking::Locks;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = Locks::new(redis::Client::open("redis://127.0.0.1/")?)?;
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

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use redis::Client;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::{Error, Reason};
use crate::job::Job;

/// The thread that serves the connection; it ends when nobody has it any more.
#[derive(Debug)]
struct Server {
    runtime: Handle,
    _end: oneshot::Sender<()>,
}

impl Server {
    fn start(locks: crate::Locks) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (_end, ended) = oneshot::channel::<()>();
        let serve = async move {
            _ = ended.await;
            // What was dropped last is released first.
            let patience = Duration::from_secs(1);
            _ = tokio::time::timeout(patience, locks.close()).await;
        };
        let thread = thread::Builder::new().name("rlock".into());
        thread.spawn(move || runtime.block_on(serve))?;
        let runtime = handle;
        Ok(Self { runtime, _end })
    }

    fn wait<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, done) = mpsc::channel();
        self.runtime.spawn(async move { sender.send(task.await) });
        done.recv().unwrap_or_else(|_| Err(Error::closed()))
    }
}

/// The locks of one server, or of a cluster: see [`Locks`](crate::Locks).
#[derive(Clone, Debug)]
pub struct Locks {
    locks: crate::Locks,
    server: Arc<Server>,
}

impl Locks {
    /// With the address, the database, the credentials and the TLS of `client`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(client: Client) -> std::io::Result<Self> {
        Self::over(crate::Locks::new(client))
    }

    /// See [`Locks::with_timeout`](crate::Locks::with_timeout).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn with_timeout(client: Client, timeout: Duration) -> std::io::Result<Self> {
        Self::over(crate::Locks::with_timeout(client, timeout))
    }

    /// See [`Locks::cluster`](crate::Locks::cluster).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn cluster(nodes: impl IntoIterator<Item = Client>) -> std::io::Result<Self> {
        Self::over(crate::Locks::cluster(nodes))
    }

    fn over(locks: crate::Locks) -> std::io::Result<Self> {
        let server = Arc::new(Server::start(locks.clone())?);
        Ok(Self { locks, server })
    }

    /// Asks for a lock: set what you want, and call [`get`](Acquire::get).
    pub fn acquire(&self, key: impl Into<String>) -> Acquire {
        self.asking(self.locks.acquire(key))
    }

    /// Asks for several locks, all or none.
    pub fn acquire_many<K: Into<String>>(&self, keys: impl IntoIterator<Item = K>) -> Acquire {
        self.asking(self.locks.acquire_many(keys))
    }

    fn asking(&self, acquire: crate::Acquire) -> Acquire {
        let server = Arc::clone(&self.server);
        Acquire { acquire, server }
    }

    /// A new job: a piece of work that takes several locks.
    pub fn job(&self) -> Job {
        self.locks.job()
    }

    /// Releases every hold, ends every wait and closes the connection.
    pub fn close(&self) {
        let locks = self.locks.clone();
        let close = async move {
            locks.close().await;
            Ok(())
        };
        _ = self.server.wait(close);
    }
}

/// A lock that is asked for: see [`Acquire`](crate::Acquire).
#[must_use = "nothing is asked for before `get`"]
#[derive(Clone, Debug)]
pub struct Acquire {
    acquire: crate::Acquire,
    server: Arc<Server>,
}

macro_rules! as_in_async {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("See [`Acquire::", stringify!($name), "`](crate::Acquire::", stringify!($name), ").")]
            pub fn $name(mut self, $($argument: $type),*) -> Self {
                self.acquire = self.acquire.$name($($argument),*);
                self
            }
        )*
    };
}

impl Acquire {
    as_in_async! {
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

    /// Asks, and waits in line if it is to.
    ///
    /// # Errors
    /// Those of awaiting an [`Acquire`](crate::Acquire).
    pub fn get(self) -> Result<Hold, Error> {
        let hold = self.server.wait(self.acquire.into_future())?;
        let server = self.server;
        Ok(Hold { hold, server })
    }
}

/// A lock that this program has: see [`Hold`](crate::Hold). Dropping it releases it.
#[must_use = "a hold that is dropped is released"]
#[derive(Debug)]
pub struct Hold {
    hold: crate::Hold,
    server: Arc<Server>,
}

impl Hold {
    /// The fencing token.
    pub fn token(&self) -> u64 {
        self.hold.token()
    }

    /// The key; of several the first.
    pub fn key(&self) -> &str {
        self.hold.key()
    }

    /// All keys that were taken together.
    pub fn keys(&self) -> &[String] {
        self.hold.keys()
    }

    /// The owner, as the server knows it.
    pub fn owner(&self) -> &str {
        self.hold.owner()
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Why it was lost, if it was.
    pub fn reason(&self) -> Option<Reason> {
        self.hold.reason()
    }

    /// Calls `told` on the thread of the connection when the hold is lost.
    pub fn on_lost(&self, told: impl FnOnce(Reason) + Send + 'static) {
        let lost = self.hold.lost();
        self.server.runtime.spawn(async move { told(lost.await) });
    }

    /// One more hold of the same lock: see [`Hold::again`](crate::Hold::again).
    ///
    /// # Errors
    /// [`Error::Lost`] if it was lost.
    pub fn again(&self) -> Result<Self, Error> {
        let hold = self.hold.again()?;
        let server = Arc::clone(&self.server);
        Ok(Self { hold, server })
    }

    /// Sets the lease to so long from now, shorter too.
    ///
    /// # Errors
    /// Those of [`Hold::renew`](crate::Hold::renew).
    pub fn renew(&self, lease: Duration) -> Result<(), Error> {
        let hold = self.hold.again()?;
        self.server.wait(async move { hold.renew(lease).await })
    }

    /// Releases it, and waits until the server has.
    ///
    /// # Errors
    /// Those of [`Hold::release`](crate::Hold::release).
    pub fn release(self) -> Result<(), Error> {
        self.server.wait(self.hold.release())
    }
}
