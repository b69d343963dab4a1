//! What the session and a hold both know of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// It has ended, or somebody waits for it.
    changed: watch::Sender<()>,
    /// The program wants to know whether somebody waits for it.
    is_asked: AtomicBool,
    /// Until when the server's last word that somebody does counts: ns of the clock.
    wanted_until: AtomicU64,
    /// ns of the clock; `u64::MAX` when it has none.
    deadline: AtomicU64,
    /// How often it has given way, and was a hold again: each is one. Odd while it gives way.
    turns: AtomicU64,
    process: u32,
}

impl State {
    pub fn new(deadline: Option<Time>) -> Self {
        let state = Self {
            fate: OnceLock::new(),
            changed: watch::Sender::new(()),
            is_asked: AtomicBool::new(false),
            wanted_until: AtomicU64::new(0),
            deadline: AtomicU64::new(u64::MAX),
            turns: AtomicU64::new(0),
            process: std::process::id(),
        };
        state.set_deadline(deadline);
        state
    }

    pub fn set_deadline(&self, deadline: Option<Time>) {
        let ns = deadline.map_or(u64::MAX, ns);
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
        self.end(match self.is_away() {
            true => Fate::Lost(Reason::Released),
            false => Fate::Over,
        });
    }

    /// It is over, until it comes back. Wakes nobody.
    pub fn give_way(&self) {
        self.turns.fetch_add(1, Ordering::AcqRel);
        self.set_deadline(None);
        self.wanted_until.store(0, Ordering::Release);
    }

    /// It is a hold again, and the program has it.
    pub fn come_back(&self) {
        self.turns.fetch_add(1, Ordering::AcqRel);
        self.notify();
    }

    /// It does not give way, or has come back; never if it did in vain.
    pub fn back(this: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut changed = this.changed.subscribe();
        let state = Arc::clone(this);
        apart(async move {
            // The sender is in `state`.
            while state.is_away() && changed.changed().await.is_ok() {}
        })
    }

    /// Whether it gives way, or did in vain.
    pub fn is_away(&self) -> bool {
        self.turns() % 2 == 1
    }

    fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    fn end(&self, end: Fate) {
        // What a fork has a copy of may be locked for ever.
        if self.process == std::process::id() {
            _ = self.fate.set(end);
        }
    }

    /// Wakes whoever waits for its end, or for somebody who waits: runs code of the program.
    pub fn notify(&self) {
        if self.process == std::process::id() {
            self.changed.send_replace(());
        }
    }

    pub fn lost(this: &Arc<Self>) -> impl Future<Output = Reason> + Send + 'static + use<> {
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
    pub fn ended(
        this: &Arc<Self>,
    ) -> impl Future<Output = Option<Reason>> + Send + 'static + use<> {
        let mut changed = this.changed.subscribe();
        let state = Arc::clone(this);
        apart(async move {
            // The sender is in `state`.
            while !state.is_over() && changed.changed().await.is_ok() {}
            state.reason()
        })
    }

    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// Whether it was asked before.
    pub fn ask(&self) -> bool {
        self.is_asked() || self.is_asked.swap(true, Ordering::AcqRel)
    }

    /// Wakes nobody.
    pub fn set_wanted(&self, until: Time) {
        self.wanted_until.store(ns(until), Ordering::Release);
    }

    pub fn is_wanted(&self) -> bool {
        ns(clock::now()) < self.wanted_until() && !self.is_over() && !self.is_away()
    }

    /// Whether the server has ever said so.
    pub fn was_wanted(&self) -> bool {
        self.wanted_until() != 0
    }

    fn wanted_until(&self) -> u64 {
        self.wanted_until.load(Ordering::Acquire)
    }

    /// True when it is wanted, also if it was only until this could go on; false when it is over, or has given way.
    pub fn wanted(this: &Arc<Self>) -> impl Future<Output = bool> + Send + 'static + use<> {
        let mut changed = this.changed.subscribe();
        let state = Arc::clone(this);
        let (before, turns) = (this.wanted_until(), this.turns());
        apart(async move {
            let is_news = || state.wanted_until() != before || state.is_wanted();
            let is_over = || state.is_over() || state.is_away() || state.turns() != turns;
            while !is_news() && !is_over() && changed.changed().await.is_ok() {}
            !is_over()
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

pub(crate) fn ns(time: Time) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
