//! A session: one connection to one server, or one to each node of a cluster, over which all
//! waits and holds run.
//!
//! `Actor` knows it all. A task on threads of rlock's own brings it what comes by itself:
//! messages, closed connections, time. The program's own tasks write their commands to the
//! connection and take the replies themselves: `wire` says how.
//!
//! At a server without the module requests go by `plain` (tries, in lines that `line` has) and holds
//! are renewed by `keep`. A server that gets the module, or forgets the functions, is
//! spoken to anew by a new connection: no hold is lost by that there.

mod acks;
mod actor;
mod apart;
mod asks;
mod backoff;
mod beat;
mod cluster;
mod direct;
mod entry;
mod grant;
mod keep;
mod line;
mod link;
mod lost;
mod node;
mod opening;
mod pending;
mod plain;
mod proofs;
mod regain;
mod replies;
mod said;
mod stay;
mod thread;
mod tokens;
mod uses;
mod want;
mod way;
mod wire;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Client;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::backend::Backend;
use crate::clock;
use crate::error::{Error, Reason};
use crate::hold::Hold;
use crate::request::{Request, Wait};
use crate::state::State;
use actor::Actor;
pub(crate) use apart::apart;
use entry::{Asked, To};
pub use link::name_connections;
pub(crate) use opening::open;
pub(crate) use thread::runtime;

type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// What the program says of its server or servers.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub is_cluster: bool,
    /// Nothing but the module will do.
    pub needs_module: bool,
    /// How often it is asked whether the module has come.
    pub asks_again: Duration,
    pub timeout: Duration,
    /// For how long this process may be silent, which the server is told. None: it is not told.
    pub patience: Option<Duration>,
}

/// What the program's side and the session's task both have.
struct Shared {
    actor: Mutex<Actor>,
    /// The task has something to do.
    wake: Notify,
    connected: Arc<AtomicBool>,
    backend: Arc<AtomicU8>,
}

impl Shared {
    fn with<T>(&self, change: impl FnOnce(&mut Actor) -> T) -> T {
        let mut actor = self.actor.lock().unwrap_or_else(PoisonError::into_inner);
        let done = change(&mut actor);
        let wake = actor.wants_its_task();
        let after = std::mem::take(&mut actor.after);
        let links = actor.nodes.iter().filter_map(|node| node.link.as_ref());
        let unwritten: Vec<_> = links.filter_map(|link| link.wire.unwritten()).collect();
        drop(actor);
        // Nothing is locked: whoever is woken by it may come here again.
        for driven in unwritten {
            driven.drive();
        }
        if wake {
            self.wake.notify_one();
        }
        for call in after {
            // The program's panic ends nothing here.
            _ = catch_unwind(AssertUnwindSafe(call));
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

struct End {
    shared: Arc<Shared>,
    runtime: Handle,
    /// A fork has a copy of what is here, which may be locked for ever, and no task.
    process: u32,
}

impl End {
    fn shared(&self) -> Result<&Shared, Error> {
        let is_here = self.process == std::process::id();
        is_here.then_some(&*self.shared).ok_or_else(Error::forked)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Ok(shared) = self.shared() {
            shared.with(|actor| actor.open = false);
            shared.wake.notify_one();
        }
    }
}

impl Session {
    /// With seeds of a cluster, or the one server.
    pub fn start(clients: &[Client], options: Options) -> Result<Self, Error> {
        let clients: Result<Vec<_>, _> = clients.iter().map(link::in_resp3).collect();
        let clients = clients.map_err(|error| Error::from_redis(&error))?;
        let runtime = runtime()?;
        let shared = Arc::new_cyclic(|shared| {
            let runtime = runtime.clone();
            let actor = Actor::new(clients, options, runtime, shared.clone());
            Shared {
                backend: Arc::clone(&actor.backend),
                connected: Arc::clone(&actor.is_connected),
                actor: Mutex::new(actor),
                wake: Notify::new(),
            }
        });
        let end = Arc::new(End {
            shared: Arc::clone(&shared),
            runtime: runtime.clone(),
            process: std::process::id(),
        });
        shared.with(|actor| actor.end = Arc::downgrade(&end));
        runtime.spawn(actor::run(shared));
        let timeout = options.timeout;
        Ok(Self { end, timeout })
    }

    fn with<T>(&self, change: impl FnOnce(&mut Actor) -> T) -> Result<T, Error> {
        Ok(self.end.shared()?.with(change))
    }

    /// The runtime of rlock's own threads.
    pub fn runtime(&self) -> &Handle {
        &self.end.runtime
    }

    /// Ends after that time, whoever awaits it. A timer of the calling thread's own is not available
    /// in the destructor of a thread-local, where tokio's own may be gone.
    pub async fn after(&self, time: Duration) {
        let mut timer = JoinSet::new();
        timer.spawn_on(async move { sleep(time).await }, self.runtime());
        timer.join_next().await;
    }

    /// Of the one server.
    pub fn is_connected(&self) -> bool {
        self.end.shared.connected.load(Ordering::Relaxed)
    }

    /// What its server has, if that is known.
    pub fn backend(&self) -> Option<Backend> {
        said::backend(self.end.shared.backend.load(Ordering::Relaxed))
    }

    pub async fn acquire(&self, id: u64, request: Arc<Request>) -> Result<Hold, Error> {
        self.ask(|actor, to| actor.acquire(id, request, Asked::new(To::Program(to), clock::now())))
            .await
    }

    /// Nobody wants the request any more.
    pub fn cancel(&self, id: u64) {
        _ = self.with(|actor| actor.cancel(id));
    }

    pub async fn renew(&self, id: u64, lease: Duration, fence: Option<u64>) -> Result<u64, Error> {
        // Its reply moves the deadline, also while the program's task is blocked.
        self.ask(|actor, to| {
            if let Some(sent) = actor.renew(id, lease, fence, to) {
                actor.follow(sent);
            }
            None
        })
        .await
    }

    /// What was a hold as `id` is released, and asked for again as `new`: see `Actor::give_way`.
    pub async fn give_way(
        &self,
        id: u64,
        new: u64,
        wait: Wait,
        state: Arc<State>,
    ) -> Result<Hold, Error> {
        self.ask(|actor, to| actor.give_way(id, new, wait, state, to))
            .await
    }

    /// That was in vain.
    pub fn gave_way_in_vain(&self, new: u64, state: &Arc<State>, reason: Reason) {
        _ = self.with(|actor| {
            actor.cancel(new);
            actor.notify_lost(Arc::clone(state), reason);
        });
    }

    /// The program wants to know whether somebody waits for it.
    pub fn want(&self, id: u64) {
        _ = self.with(|actor| actor.want(id));
    }

    pub async fn release(&self, id: u64) -> Result<(), Error> {
        self.ask(|actor, to| {
            actor.left(id);
            let sent = actor.release(id, Some(to))?;
            if actor.is_of_job(id) {
                // Other requests come after it, whether somebody awaits it or not.
                actor.follow(sent);
                return None;
            }
            Some(sent)
        })
        .await
    }

    /// Releases it in the background.
    pub fn let_go(&self, id: u64) {
        _ = self.with(|actor| {
            actor.left(id);
            actor.let_go(id);
        });
    }

    pub async fn close(&self) {
        let (to, done) = oneshot::channel();
        if self.with(|actor| actor.close(to)).is_ok() {
            _ = apart(done).await;
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
