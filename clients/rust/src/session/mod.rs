//! A session: one connection to one server, or one to each node of a cluster, over which all
//! waits and holds run.
//!
//! `Actor` knows it all. A task tells it what comes by itself: messages, closed connections,
//! time. The program's own tasks send their commands and take the replies themselves, so that
//! a command costs no more changes of tasks than one of redis-rs.

mod acks;
mod actor;
mod asks;
mod cluster;
mod direct;
mod entry;
mod link;
mod lost;
mod node;
mod regain;
mod told;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Client;
use tokio::sync::{Notify, oneshot};

use crate::error::Error;
use crate::hold::Hold;
use crate::request::Request;
use actor::Actor;

type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// What the program's side and the session's task both have.
struct Shared {
    actor: Mutex<Actor>,
    /// The task has something to do.
    wake: Notify,
    /// The runtime of the task has ended.
    over: AtomicBool,
    connected: Arc<AtomicBool>,
}

impl Shared {
    fn with<T>(&self, change: impl FnOnce(&mut Actor) -> T) -> T {
        let mut actor = self.actor.lock().unwrap_or_else(PoisonError::into_inner);
        let done = change(&mut actor);
        let wake = actor.wants_its_task();
        // Dropped holds come here again.
        let unwanted = std::mem::take(&mut actor.unwanted);
        drop(actor);
        drop(unwanted);
        if wake {
            self.wake.notify_one();
        }
        done
    }
}

/// The program's end of it. The session ends when the last of these is gone.
#[derive(Clone)]
pub(crate) struct Session {
    end: Arc<End>,
    pub timeout: Duration,
}

struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.with(|actor| actor.open = false);
        self.0.wake.notify_one();
    }
}

impl Session {
    /// Within a tokio runtime. With seeds of a cluster, or the one server.
    pub fn start(clients: &[Client], is_cluster: bool, timeout: Duration) -> Result<Self, Error> {
        let clients: Result<Vec<_>, _> = clients.iter().map(link::in_resp3).collect();
        let clients = clients.map_err(|error| Error::from_redis(&error))?;
        let shared = Arc::new_cyclic(|shared| {
            let actor = Actor::new(clients, is_cluster, timeout, shared.clone());
            Shared {
                connected: Arc::clone(&actor.is_connected),
                actor: Mutex::new(actor),
                wake: Notify::new(),
                over: AtomicBool::new(false),
            }
        });
        let end = Arc::new(End(Arc::clone(&shared)));
        shared.with(|actor| actor.end = Arc::downgrade(&end));
        tokio::spawn(actor::run(shared));
        Ok(Self { end, timeout })
    }

    fn with<T>(&self, change: impl FnOnce(&mut Actor) -> T) -> T {
        self.end.0.with(change)
    }

    /// Whether its runtime has ended.
    pub fn is_over(&self) -> bool {
        self.end.0.over.load(Ordering::Acquire)
    }

    /// Of the one server.
    pub fn is_connected(&self) -> bool {
        self.end.0.connected.load(Ordering::Relaxed)
    }

    pub async fn acquire(&self, id: u64, request: Arc<Request>) -> Result<Hold, Error> {
        self.ask(|actor, to| actor.acquire(id, request, to)).await
    }

    /// Nobody wants the request any more.
    pub fn cancel(&self, id: u64) {
        self.with(|actor| actor.cancel(id));
    }

    pub async fn renew(&self, id: u64, lease: Duration, fence: Option<u64>) -> Result<u64, Error> {
        self.ask(|actor, to| actor.renew(id, lease, fence, to))
            .await
    }

    pub async fn release(&self, id: u64) -> Result<(), Error> {
        self.ask(|actor, to| actor.release(id, Some(to))).await
    }

    /// Releases it in the background.
    pub fn let_go(&self, id: u64) {
        self.with(|actor| {
            if let Some(sent) = actor.release(id, None) {
                actor.follow(sent);
            }
        });
    }

    pub async fn close(&self) {
        let (to, done) = oneshot::channel();
        self.with(|actor| actor.close(to));
        // Its runtime may have ended.
        if !self.is_over() {
            _ = done.await;
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
