//! Who uses a sticky lock: what a use sees of it without the session.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task;

use crate::acquire::fresh_id;
use crate::clock::{self, Time};
use crate::process;
use crate::request::{Request, counted};
use crate::state::{State, ns};

/// What came of an acquisition.
#[derive(Debug)]
pub(crate) struct Acquired {
    /// Of its entry in the session.
    pub id: u64,
    pub request: Arc<Request>,
    pub state: Arc<State>,
}

const NOBODY: u64 = 0;
/// While it decides.
const SESSION: u64 = u64::MAX;

/// The turn of a sticky lock, and what a use looks at that takes it. The order of these steps is what
/// keeps a decision of the session and a use apart, so all of them are in one order for all threads.
#[derive(Debug)]
pub(crate) struct Turn {
    pub id: u64,
    pub key: String,
    pub lease: Duration,
    pub idle: Duration,
    pub process: u32,
    /// The number of the use that has it, the session, or nobody.
    has: AtomicU64,
    /// Uses wait for it in the session's line.
    waits: AtomicBool,
    /// Until when a use needs to ask nobody; 0: the session has to look first. All times are ns of the clock.
    until: AtomicU64,
    /// The last proof of the connection.
    proof: AtomicU64,
    /// For so long a proof is good.
    half: u64,
    /// When the last use ended.
    used: AtomicU64,
    /// That have ended since the grant.
    uses: AtomicU64,
    /// It changes only while the session has the turn, or nobody can begin. The session has to know it.
    acquired: Mutex<Option<Arc<Acquired>>>,
}

impl Turn {
    pub fn new(key: String, lease: Duration, idle: Duration) -> Self {
        process::prepare();
        Self {
            id: fresh_id(),
            key,
            lease,
            idle,
            process: process::id(),
            has: AtomicU64::new(NOBODY),
            waits: AtomicBool::new(false),
            until: AtomicU64::new(0),
            proof: AtomicU64::new(0),
            half: ns(counted(lease, true) / 2),
            used: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            acquired: Mutex::new(None),
        }
    }

    /// Of a process that was forked from that of the other.
    pub fn anew(&self) -> Self {
        Self::new(self.key.clone(), self.lease, self.idle)
    }

    /// Without a word to anybody, if nothing speaks against it.
    pub fn begin(&self, number: u64) -> Option<Arc<Acquired>> {
        // A fork of the fork has a copy of it, too.
        if self.process != process::id() || !self.take(number) {
            return None;
        }
        let now = clock::now();
        let is_free = !self.waits.load(Ordering::SeqCst);
        if is_free && !self.is_past(now) && self.is_proved(now) {
            let acquired = self.acquired.lock();
            let acquired = acquired.unwrap_or_else(PoisonError::into_inner);
            if acquired.is_some() {
                return acquired.clone();
            }
        }
        // Who does not come in so waits in the line, and the session looks then: nobody is overlooked.
        self.give_back(number);
        None
    }

    /// For the session, to decide.
    pub fn take_to_decide(&self) -> bool {
        self.take(SESSION)
    }

    pub fn decided(&self) {
        self.give_back(SESSION);
    }

    /// By the session, which has it.
    pub fn hand_to(&self, number: u64) {
        self.has.store(number, Ordering::SeqCst);
    }

    fn take(&self, number: u64) -> bool {
        let taken = self
            .has
            .compare_exchange(NOBODY, number, Ordering::SeqCst, Ordering::SeqCst);
        taken.is_ok()
    }

    /// If it has it.
    pub fn give_back(&self, number: u64) {
        _ = self
            .has
            .compare_exchange(number, NOBODY, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub fn is_of(&self, number: u64) -> bool {
        self.has.load(Ordering::SeqCst) == number
    }

    pub fn is_used(&self) -> bool {
        ![NOBODY, SESSION].contains(&self.has.load(Ordering::SeqCst))
    }

    /// Somebody has to look what follows from the end of a use.
    pub fn is_looked_for(&self, now: Time) -> bool {
        self.waits.load(Ordering::SeqCst) || self.is_past(now)
    }

    pub fn is_past(&self, now: Time) -> bool {
        ns(now) >= self.until.load(Ordering::SeqCst)
    }

    /// Whether the connection was proved a short while ago.
    pub fn is_proved(&self, now: Time) -> bool {
        ns(now) < self.proof.load(Ordering::SeqCst).saturating_add(self.half)
    }

    pub fn used(&self) -> Time {
        Duration::from_nanos(self.used.load(Ordering::SeqCst))
    }

    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::SeqCst)
    }

    /// A use has ended, which has the turn: nobody else counts now.
    pub fn ended(&self, at: Time) {
        self.used.store(ns(at), Ordering::SeqCst);
        self.uses.store(self.uses() + 1, Ordering::SeqCst);
    }

    // By the session.

    /// With its grant.
    pub fn begins(&self, at: Time) {
        self.used.store(ns(at), Ordering::SeqCst);
        self.uses.store(0, Ordering::SeqCst);
    }

    pub fn set_waits(&self, waits: bool) {
        self.waits.store(waits, Ordering::SeqCst);
    }

    pub fn set_proof(&self, at: Time) {
        self.proof.store(ns(at), Ordering::SeqCst);
    }

    pub fn set_acquired(&self, acquired: &Arc<Acquired>, until: Time) {
        self.put(Some(Arc::clone(acquired)));
        self.until.store(ns(until), Ordering::SeqCst);
    }

    /// No use begins any more without the session.
    pub fn stop(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// The session has it, and the lock is not there any more.
    pub fn empty(&self) {
        self.stop();
        self.put(None);
    }

    fn put(&self, new: Option<Arc<Acquired>>) {
        let mut acquired = self.acquired.lock().unwrap_or_else(PoisonError::into_inner);
        *acquired = new;
    }
}

thread_local! {
    /// The sticky locks in whose uses this thread is now, and of which task: within the body of one a runtime may run others.
    static WITHIN: RefCell<Vec<(u64, Option<task::Id>)>> = const { RefCell::new(Vec::new()) };
}

/// Whether this is within a use of that lock.
pub(crate) fn is_within(id: u64) -> bool {
    // In the destructor of another thread-local there may be none any more.
    let within = WITHIN.try_with(|within| within.borrow().contains(&(id, task::try_id())));
    within.unwrap_or(false)
}

/// Runs a body of a use, or a part of it.
pub(crate) fn within<T>(id: u64, run: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            _ = WITHIN.try_with(|within| within.borrow_mut().pop());
        }
    }
    let entered = WITHIN.try_with(|within| within.borrow_mut().push((id, task::try_id())));
    let _leave = entered.is_ok().then_some(Leave);
    run()
}
