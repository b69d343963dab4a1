//! What all threads of a round share, and write down.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::now_us;
use crate::judge::{Hold, Kind};
use crate::rule::Rule;
use crate::set::Ways;

/// All in ms.
#[derive(Clone, Copy)]
pub struct Times {
    pub lease: u64,
    /// For so long they wait at most, blocked and queued.
    pub wait: u64,
    /// And for so long after that they expect the answer.
    pub grace: u64,
}

/// How many were told this, and after how many ms from the fault the last.
#[derive(Clone, Copy, Default)]
pub struct Told {
    pub count: u64,
    pub last_ms: f64,
}

/// The earliest at the new master, us.
#[derive(Clone, Copy, Default)]
pub struct Firsts {
    pub grant: Option<u64>,
    pub begun: Option<u64>,
    pub back: Option<u64>,
}

#[derive(Default)]
pub struct Notes {
    pub holds: Vec<Hold>,
    /// When it was seen that what holds are bound to is gone.
    pub closed: HashMap<u64, u64>,
    pub told: BTreeMap<(Kind, String), Told>,
    pub firsts: Firsts,
    /// Replies with a token from the old master.
    pub old_grants: Vec<u64>,
    /// Grants whose WAIT said too few.
    pub not_begun: u64,
    /// Of those who came back: at the new master they were granted, or told this.
    pub back: BTreeMap<String, u64>,
}

pub struct World {
    pub ways: Ways,
    pub rule: Rule,
    pub times: Times,
    /// Who is told something does not ask again.
    quiet: AtomicBool,
    stop: AtomicBool,
    /// Waits without an answer yet.
    open: AtomicI64,
    fault: AtomicU64,
    next: AtomicU64,
    /// Keys that were taken at the old master and at the new one, and until when it is
    /// of use to ask for them at the other.
    lists: [Mutex<VecDeque<(String, u64)>>; 2],
    notes: Mutex<Notes>,
}

impl World {
    pub fn new(ways: Ways, rule: Rule, times: Times) -> Self {
        Self {
            ways,
            rule,
            times,
            quiet: AtomicBool::new(false),
            open: AtomicI64::new(0),
            stop: AtomicBool::new(false),
            fault: AtomicU64::new(0),
            next: AtomicU64::new(1),
            lists: Default::default(),
            notes: Mutex::default(),
        }
    }

    pub fn be_quiet(&self) {
        self.quiet.store(true, Ordering::SeqCst);
    }

    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::SeqCst)
    }

    /// So many more waits, or fewer.
    pub fn waits(&self, more: i64) {
        self.open.fetch_add(more, Ordering::SeqCst);
    }

    pub fn unanswered(&self) -> i64 {
        self.open.load(Ordering::SeqCst)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub fn set_fault(&self, at: u64) {
        self.fault.store(at, Ordering::SeqCst);
    }

    /// None before it.
    pub fn fault(&self) -> Option<u64> {
        Some(self.fault.load(Ordering::SeqCst)).filter(|at| *at > 0)
    }

    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self, old: bool) -> MutexGuard<'_, VecDeque<(String, u64)>> {
        let list = &self.lists[usize::from(old)];
        list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody told this; counted for what was asked of the old master.
    pub fn told(&self, kind: Kind, what: &str, on_old: bool) {
        let fault = self.fault();
        let mut notes = self.notes();
        if !on_old {
            *notes.back.entry(what.to_owned()).or_default() += 1;
            return;
        }
        // What happens before the fault is of no interest, but for what follows it.
        let Some(fault) = fault else { return };
        let told = notes.told.entry((kind, what.to_owned())).or_default();
        told.count += 1;
        let ms = now_us().saturating_sub(fault) as f64 / 1000.0;
        told.last_ms = told.last_ms.max(ms);
    }

    pub fn granted(&self, on_old: bool, at: u64) {
        let mut notes = self.notes();
        match on_old {
            true => notes.old_grants.push(at),
            false => earliest(&mut notes.firsts.grant, at),
        }
    }

    pub fn begun(&self, holds: Vec<Hold>) {
        for hold in &holds {
            // A watchdog's hold may outlive its lease.
            let more = if hold.bound.is_some() { 12_000_000 } else { 0 };
            let entry = (hold.key.clone(), hold.to + more);
            self.list(hold.on_old).push_back(entry);
        }
        let mut notes = self.notes();
        for hold in &holds {
            if hold.on_old {
                continue;
            }
            earliest(&mut notes.firsts.begun, hold.from);
            if matches!(hold.kind, Kind::Block | Kind::Queue) {
                earliest(&mut notes.firsts.back, hold.from);
            }
        }
        notes.holds.extend(holds);
    }

    pub fn closed(&self, bound: u64) {
        let at = now_us();
        self.notes().closed.entry(bound).or_insert(at);
    }

    /// Keys taken on the other side, the newest first.
    pub fn to_challenge(&self, on_old: bool, count: usize) -> Vec<(String, u64)> {
        let mut list = self.list(!on_old);
        let (mut keys, now) = (Vec::new(), now_us());
        while keys.len() < count {
            match list.pop_back() {
                Some((_, until)) if until < now => {}
                Some(entry) => keys.push(entry),
                None => break,
            }
        }
        keys
    }

    /// These were not had: later again, after the others.
    pub fn challenge_later(&self, on_old: bool, keys: Vec<(String, u64)>) {
        let mut list = self.list(!on_old);
        keys.into_iter().for_each(|entry| list.push_front(entry));
    }
}

fn earliest(first: &mut Option<u64>, at: u64) {
    *first = Some(first.map_or(at, |first| first.min(at)));
}

/// The first word of an error, which is its code.
pub fn code(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}
