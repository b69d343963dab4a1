//! What a program makes once.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::Client;

use crate::acquire::Acquire;
use crate::backend::Backend;
use crate::clock::at_most_far;
use crate::error::Error;
use crate::job::Job;
use crate::request::PATIENCE;
use crate::session::{Options, Session};
use crate::slots::slot;
use crate::sticky::StickyBuilder;

/// The locks of one server, or of a cluster: make it once for each process and clone it.
///
/// All its waits and holds run over one connection (in a cluster one to each node), which is
/// opened by the first request and served by threads of rlock's own. So they go on whatever
/// becomes of the tasks and runtimes of the program, and it can be used in all of them.
///
/// ```no_run
/// # use std::time::Duration;
/// # use rlock_client::Locks;
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::new(redis::Client::open("redis://127.0.0.1/")?);
/// let hold = locks.acquire("jobs").wait(Duration::from_secs(10)).await?;
/// println!("token {}", hold.token());
/// hold.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Locks {
    shared: Arc<Shared>,
}

struct Shared {
    /// The one server, or nodes of the cluster.
    clients: Vec<Client>,
    options: Options,
    /// Of the process that this was made in, and of one that was forked from it.
    sessions: [OnceLock<(u32, Session)>; 2],
    process: u32,
}

impl Locks {
    /// The locks of the server with this URL: `redis://user:password@host:port/db`, or
    /// `rediss://` (TLS, with the feature `tls-rustls` or `tls-native-tls`).
    ///
    /// # Errors
    /// [`Error::Argument`] if it is none, or TLS was not switched on.
    pub fn open(url: &str) -> Result<Self, Error> {
        let client = Client::open(url).map_err(|error| Error::from_redis(&error))?;
        Ok(Self::new(client))
    }

    /// With the address, the database, the credentials and the TLS of `client`.
    pub fn new(client: Client) -> Self {
        Self::with_timeout(client, Duration::from_secs(5))
    }

    /// `timeout`: how long a connection may take, and how long a request that does not wait
    /// (or for less) may try to get one. It is 5 s otherwise.
    pub fn with_timeout(client: Client, timeout: Duration) -> Self {
        Self::over(vec![client], false, timeout)
    }

    /// The locks of a cluster. `nodes` are some of its nodes; the others are found by them,
    /// with the credentials and the TLS of the first.
    ///
    /// ```no_run
    /// # use rlock_client::Locks;
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let nodes = ["redis://a:7000/", "redis://b:7000/"].map(redis::Client::open);
    /// let locks = Locks::cluster(nodes.into_iter().collect::<Result<Vec<_>, _>>()?);
    /// let hold = locks.acquire("jobs").await?;
    /// # drop(hold); Ok(()) }
    /// ```
    pub fn cluster(nodes: impl IntoIterator<Item = Client>) -> Self {
        Self::cluster_with_timeout(nodes, Duration::from_secs(5))
    }

    /// See [`cluster`](Locks::cluster) and [`with_timeout`](Locks::with_timeout).
    pub fn cluster_with_timeout(
        nodes: impl IntoIterator<Item = Client>,
        timeout: Duration,
    ) -> Self {
        Self::over(nodes.into_iter().collect(), true, timeout)
    }

    fn over(clients: Vec<Client>, is_cluster: bool, timeout: Duration) -> Self {
        let options = Options {
            is_cluster,
            needs_module: false,
            asks_again: Duration::from_secs(60),
            timeout: at_most_far(timeout),
            patience: Some(PATIENCE),
        };
        Self::with(clients, options)
    }

    fn with(clients: Vec<Client>, options: Options) -> Self {
        let shared = Shared {
            clients,
            options,
            sessions: Default::default(),
            process: std::process::id(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The same locks, for servers that have the module alone: what is asked of another is
    /// [`Error::Refused`]. Say it before the first request.
    ///
    /// ```no_run
    /// # use rlock_client::Locks;
    /// # fn example() -> Result<(), rlock_client::Error> {
    /// let locks = Locks::open("redis://127.0.0.1/")?.require_module();
    /// # drop(locks); Ok(()) }
    /// ```
    pub fn require_module(self) -> Self {
        let mut options = self.shared.options;
        options.needs_module = true;
        Self::with(self.shared.clients.clone(), options)
    }

    /// The same locks, for a process that may be silent for so long (30 s): one that is stopped for
    /// longer, or has vanished while its connection stands, loses what somebody waits for, with
    /// [`Reason::Silent`](crate::Reason::Silent). While it has a hold with a longer lease it is that lease. `None`: it may
    /// be silent for ever. Say it before the first request.
    ///
    /// It is about holds that the server renews, at a server that has the module. rlock's own threads say that the
    /// process lives: a task or runtime that is blocked is not silent.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use rlock_client::Locks;
    /// # fn example() -> Result<(), rlock_client::Error> {
    /// let locks = Locks::open("redis://127.0.0.1/")?.patience(Duration::from_secs(60))?;
    /// let for_ever = Locks::open("redis://127.0.0.1/")?.patience(None)?;
    /// # drop((locks, for_ever)); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] if it is 0.
    pub fn patience(self, patience: impl Into<Option<Duration>>) -> Result<Self, Error> {
        let patience = patience.into();
        if patience.is_some_and(|patience| patience.is_zero()) {
            return Err(Error::Argument("patience is longer than 0, or None".into()));
        }
        let mut options = self.shared.options;
        options.patience = patience.map(at_most_far);
        Ok(Self::with(self.shared.clients.clone(), options))
    }

    /// For tests: how often a server without the module is asked whether it has come.
    #[doc(hidden)]
    pub fn ask_again_every(self, asks_again: Duration) -> Self {
        let mut options = self.shared.options;
        options.asks_again = asks_again;
        Self::with(self.shared.clients.clone(), options)
    }

    /// What the server has, once there was a connection to it; of a cluster what the node has that
    /// has least.
    pub fn backend(&self) -> Option<Backend> {
        self.session().ok()?.backend()
    }

    /// In a cluster several keys lie in one slot.
    pub(crate) fn check(&self, keys: &[String]) -> Result<(), Error> {
        let slots = keys.windows(2).map(|pair| (slot(&pair[0]), slot(&pair[1])));
        if self.shared.options.is_cluster && slots.into_iter().any(|(one, other)| one != other) {
            let text = "keys that are taken together lie in one slot: give them one {tag}";
            return Err(Error::Argument(text.into()));
        }
        Ok(())
    }

    /// Asks for a lock: set what you want, and `.await` it.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(locks: rlock_client::Locks) -> Result<(), rlock_client::Error> {
    /// let tried = locks.acquire("jobs").await; // without waiting
    /// let read = locks.acquire("prices").read().wait(Duration::from_secs(10)).await?;
    /// # drop((tried, read)); Ok(()) }
    /// ```
    pub fn acquire(&self, key: impl Into<String>) -> Acquire {
        Acquire::new(self.clone(), vec![key.into()])
    }

    /// Asks for several locks, all or none: one hold of all of them. In a cluster they lie
    /// in one slot.
    ///
    /// ```no_run
    /// # async fn example(locks: rlock_client::Locks) -> Result<(), rlock_client::Error> {
    /// let both = locks.acquire_many(["account:1", "account:2"]).wait_forever().await?;
    /// # drop(both); Ok(()) }
    /// ```
    pub fn acquire_many<K: Into<String>>(&self, keys: impl IntoIterator<Item = K>) -> Acquire {
        Acquire::new(self.clone(), keys.into_iter().map(Into::into).collect())
    }

    /// A lock that stays with this process between its uses: for places that take the same lock again and again, and
    /// cannot hold it around a loop. Set what you want, and call [`build`](StickyBuilder::build); make it once, and clone
    /// it.
    ///
    /// It is one plain lock. A use of it costs no word to the server as long as the lock is here and nobody else wants it.
    /// Others see it held as long as this process has it, also while nobody uses it. It goes back when somebody waits for
    /// it, when it was not used for 1 s ([`idle`](StickyBuilder::idle)), and every second for who only tries.
    ///
    /// ```no_run
    /// # async fn write(entry: &str, token: u64) {}
    /// # async fn example(locks: rlock_client::Locks) -> Result<(), rlock_client::Error> {
    /// let sticky = locks.sticky("ledger").build()?;
    /// for entry in ["a", "b"] {
    ///     let done = sticky.run(|turn| async move {
    ///         let token = turn.token().await?;
    ///         write(entry, token).await;
    ///         Ok::<_, rlock_client::Error>(())
    ///     });
    ///     done.await??;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn sticky(&self, key: impl Into<String>) -> StickyBuilder {
        StickyBuilder::new(self.clone(), key.into())
    }

    /// A new job: a piece of work that takes several locks.
    pub fn job(&self) -> Job {
        Job::new()
    }

    /// Releases every hold, ends every wait and closes the connection; within the timeout of
    /// connections at the latest, whatever the server does.
    ///
    /// Holds are lost with [`Reason::Closed`](crate::Reason::Closed): what runs under them is to
    /// have ended before. Waits and further requests fail with [`Error::Connection`].
    pub async fn close(&self) {
        if let Ok(session) = self.session() {
            session.close().await;
        }
    }

    /// For the command line. Of one server.
    #[doc(hidden)]
    pub fn is_connected(&self) -> bool {
        self.session().is_ok_and(|session| session.is_connected())
    }

    /// Of this process, if there is one.
    pub(crate) fn session_if_any(&self) -> Option<&Session> {
        let me = std::process::id();
        let all = self.shared.sessions.iter().filter_map(OnceLock::get);
        all.into_iter().find(|of| of.0 == me).map(|of| &of.1)
    }

    pub(crate) fn session(&self) -> Result<&Session, Error> {
        let Shared {
            clients,
            options,
            sessions: [first, forked],
            process,
        } = &*self.shared;
        let me = std::process::id();
        let session = if me == *process { first } else { forked };
        let (process, session) = match session.get() {
            Some(session) => session,
            None => {
                let new = Session::start(clients, *options)?;
                session.get_or_init(|| (me, new))
            }
        };
        // Forked twice.
        if *process != me {
            return Err(Error::forked());
        }
        Ok(session)
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |client: &Client| client.get_connection_info().addr().to_string();
        let servers: Vec<_> = self.shared.clients.iter().map(address).collect();
        f.debug_struct("Locks").field("servers", &servers).finish()
    }
}
