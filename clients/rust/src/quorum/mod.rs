//! A lock by a majority of servers that know nothing of each other (RedLock, with tokens that
//! rise).

mod attempt;
mod hold;
mod server;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::clock::{at_most_far, now};
use crate::error::Error;
use crate::request::{LEASE, Wait, wrong_with};
use crate::session::{apart, runtime};

pub use hold::QuorumHold;
use server::{Server, TIMEOUT};

/// Several servers, an odd number of them, none a replica of another. Every program that takes
/// the same locks names the same servers, in the same order.
///
/// Tokens of holds rise strictly as long as no server forgets its counters, whatever clocks,
/// pauses and messages do. That one has it at a time needs besides that no server forgets a
/// hold (`appendfsync always`), that nobody uses FORCE or DEL, and that clocks run alike within
/// 1 in 100. Never use a key both by quorum and on one of the servers alone.
///
/// A server that comes back is asked again with each renewal, and counts as long as the hold
/// has been good all the time; so a hold outlives one server after the other.
///
/// ```no_run
/// # use std::time::Duration;
/// # use rlock_client::Quorum;
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let servers = ["redis://a/", "redis://b/", "redis://c/"];
/// let clients = servers.map(redis::Client::open).into_iter().collect::<Result<Vec<_>, _>>()?;
/// let quorum = Quorum::new(clients);
/// let hold = quorum.acquire("jobs").wait(Duration::from_secs(10)).await?;
/// println!("token {}", hold.token());
/// hold.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Quorum {
    servers: Arc<[Server]>,
    trouble: Arc<Mutex<Option<String>>>,
    closed: Arc<watch::Sender<bool>>,
}

impl Quorum {
    /// With one client for each server.
    pub fn new(clients: impl IntoIterator<Item = Client>) -> Self {
        Self {
            servers: clients.into_iter().map(Server::new).collect(),
            trouble: Arc::default(),
            closed: Arc::default(),
        }
    }

    /// The same, where servers that have the module alone count: see
    /// [`Locks::require_module`](crate::Locks::require_module).
    pub fn require_module(self) -> Self {
        let servers = self.servers.iter().cloned().map(Server::require_module);
        Self {
            servers: servers.collect(),
            ..self
        }
    }

    /// Asks for a lock: set what you want, and `.await` it.
    pub fn acquire(&self, key: impl Into<String>) -> QuorumAcquire {
        QuorumAcquire {
            quorum: self.clone(),
            key: key.into(),
            wait: Wait::Once,
            lease: LEASE,
        }
    }

    /// Releases every hold, ends every wait and closes the connections: see
    /// [`Locks::close`](crate::Locks::close).
    pub async fn close(&self) {
        self.closed.send_replace(true);
        let Ok(runtime) = runtime() else { return };
        let mut closing = JoinSet::new();
        for server in &*self.servers {
            let server = server.clone();
            closing.spawn_on(async move { server.locks.close().await }, &runtime);
        }
        apart(async { while closing.join_next().await.is_some() {} }).await;
    }

    /// For the command line: why the last attempt found no majority that answers, if so.
    #[doc(hidden)]
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_trouble(&self, error: &Error) {
        let text = matches!(error, Error::Connection(_)).then(|| error.to_string());
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = text;
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Argument(text.into()));
        if *self.closed.borrow() {
            return Err(Error::closed());
        }
        if self.servers.is_empty() || self.servers.len().is_multiple_of(2) {
            return wrong("a quorum is of an odd number of servers");
        }
        let mut addresses: Vec<_> = self.servers.iter().map(Server::address).collect();
        addresses.sort_unstable();
        if addresses.windows(2).any(|pair| pair[0] == pair[1]) {
            return wrong("a server of a quorum is named twice");
        }
        Ok(())
    }

    fn majority(&self) -> usize {
        self.servers.len() / 2 + 1
    }
}

/// A lock that is asked for by quorum. Dropping the future of it ends the wait and releases
/// what was acquired.
#[must_use = "nothing is asked for before it is awaited"]
#[derive(Clone, Debug)]
pub struct QuorumAcquire {
    quorum: Quorum,
    key: String,
    wait: Wait,
    lease: Duration,
}

impl QuorumAcquire {
    /// Waits for at most so long: in the queue of the first server that can be reached.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = Wait::at_most(time);
        self
    }

    /// Waits for as long as it takes.
    pub fn wait_forever(mut self) -> Self {
        self.wait = Wait::Forever;
        self
    }

    /// How long the hold lasts without renewal (10 s). The client renews it every third of it.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = at_most_far(lease);
        self
    }

    /// On rlock's own threads. When this is dropped that ends at its next `.await`, and what was
    /// had is released.
    async fn ask(self) -> Result<QuorumHold, Error> {
        self.quorum.check()?;
        if let Some(why) = wrong_with(std::slice::from_ref(&self.key)) {
            return Err(Error::Argument(why.into()));
        }
        if self.lease < Duration::from_millis(100) {
            return Err(Error::Argument(
                "the lease of a quorum is at least 100 ms".into(),
            ));
        }
        let mut closed = self.quorum.closed.subscribe();
        let mut asking = JoinSet::new();
        asking.spawn_on(self.try_on(), &runtime()?);
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(Error::closed()),
            end = asking.join_next() => match end {
                Some(Ok(end)) => end,
                _ => Err(Error::Connection("the attempt has ended by itself".into())),
            },
        }
    }

    fn not_acquired(&self) -> Error {
        Error::NotAcquired {
            key: self.key.clone(),
            held_by: None,
        }
    }

    async fn try_on(self) -> Result<QuorumHold, Error> {
        let begun = now();
        let mut pause = Duration::from_millis(20);
        loop {
            let left = match self.wait {
                Wait::For(time) => Wait::at_most((begun + time).saturating_sub(now())),
                wait => wait,
            };
            let error = match self.attempt(left).await {
                Err(error) if passes(&error) => error,
                end => return end,
            };
            self.quorum.set_trouble(&error);
            // Random, so that those who have split the servers do not do so again.
            let random = uuid::Uuid::new_v4().as_u128() % 1000;
            let rest = pause.mul_f64(0.5 + random as f64 / 1000.0);
            // Servers that are away may come back meanwhile.
            let least = match error {
                Error::Connection(_) => TIMEOUT,
                _ => Duration::ZERO,
            };
            let over = match self.wait {
                Wait::Once => now() + rest >= begun + least,
                Wait::For(time) => now() + rest >= begun + time.max(least),
                Wait::Forever => false,
            };
            if over {
                return Err(match error {
                    Error::Lost(_) => self.not_acquired(),
                    error => error,
                });
            }
            sleep(rest).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

/// Nobody has a majority, or servers are away, or have started just now.
fn passes(error: &Error) -> bool {
    match error {
        Error::NotAcquired { .. } | Error::Connection(_) | Error::Lost(_) => true,
        error => error.is_not_yet(),
    }
}

impl IntoFuture for QuorumAcquire {
    type Output = Result<QuorumHold, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// # Errors
    /// [`Error::NotAcquired`] where somebody else has a majority, [`Error::Connection`] where no
    /// majority can be reached, and those of [`Acquire`](crate::Acquire).
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(apart(self.ask()))
    }
}
