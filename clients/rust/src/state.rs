//! What the session and a hold both know of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{self, Time};
use crate::error::Reason;
use crate::session::apart;

/// What became of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The program has released or dropped it.
    Over,
    Lost(Reason),
}

/// What the session and the hold both see.
#[derive(Debug)]
pub(crate) struct State {
    /// Known as soon as the session knows it: whoever waits is notified after that.
    fate: OnceLock<Fate>,
    ended: watch::Sender<()>,
    /// ns of the clock; `u64::MAX` when it has none.
    deadline: AtomicU64,
    process: u32,
}

impl State {
    pub fn new(deadline: Option<Time>) -> Self {
        let state = Self {
            fate: OnceLock::new(),
            ended: watch::Sender::new(()),
            deadline: AtomicU64::new(u64::MAX),
            process: std::process::id(),
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

    /// The first reason stays. Wakes nobody: [`State::notify`] does, after that.
    pub fn lose(&self, reason: Reason) {
        self.end(Fate::Lost(reason));
    }

    /// The program has it no more.
    pub fn leave(&self) {
        self.end(Fate::Over);
    }

    fn end(&self, end: Fate) {
        // What a fork has a copy of may be locked for ever.
        if self.process == std::process::id() {
            _ = self.fate.set(end);
        }
    }

    /// Wakes whoever waits for its end: runs code of the program.
    pub fn notify(&self) {
        if self.process == std::process::id() {
            self.ended.send_replace(());
        }
    }

    pub fn lost(this: &Arc<Self>) -> impl Future<Output = Reason> + Send + 'static {
        let ended = Self::ended(this);
        async {
            match ended.await {
                Some(reason) => reason,
                // It was never lost.
                None => std::future::pending().await,
            }
        }
    }

    /// Why it was lost; none if it never was.
    pub fn ended(this: &Arc<Self>) -> impl Future<Output = Option<Reason>> + Send + 'static {
        let mut ended = this.ended.subscribe();
        let state = Arc::clone(this);
        apart(async move {
            // The sender is in `state`.
            while !state.is_over() && ended.changed().await.is_ok() {}
            state.reason()
        })
    }

    fn is_over(&self) -> bool {
        self.reason().is_some() || self.fate.get().is_some()
    }

    pub fn reason(&self) -> Option<Reason> {
        if self.process != std::process::id() {
            return Some(Reason::Fork);
        }
        if self.deadline().is_some_and(|at| at <= clock::now()) {
            // The machine may have slept over it, and timers with it.
            self.lose(Reason::Lease);
        }
        match self.fate.get() {
            Some(&Fate::Lost(reason)) => Some(reason),
            Some(Fate::Over) | None => None,
        }
    }
}
