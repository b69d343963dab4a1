//! From when to when an owner surely held a lock: from the reply that says so to the
//! first moment at which anything may have ended it. Nothing is certain but that;
//! where two accounts are possible the shorter one counts.

use rlock_torture::history::Out;

use crate::clocks::{self, FORWARD};
use crate::past::{ends_all, ends_key, switches, Asked, Past, NEVER};
use crate::request::{Mode, Verb};
use crate::silent;
use crate::strict;

/// What a server may be off by when it counts from a request to its deadline, us.
const ROUNDING: u64 = 5_000;
/// Watchdogs of shorter leases are not relied on: a busy machine may stall for long
/// enough to lose them.
const SAFE_WATCHDOG: u64 = 1_500_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The operation whose reply says so.
    pub op: usize,
    pub mode: Mode,
    pub start: u64,
    pub end: u64,
    /// When it would have ended if nothing had been done to the lock or its server.
    pub natural: u64,
    /// The fault that cut it short.
    pub by: Option<String>,
    /// How many permits: so many more, or so many in all.
    pub permits: i64,
    pub adds: bool,
}

impl Hold {
    /// It was surely there for a while.
    pub fn lasts(&self) -> bool {
        self.end > self.start
    }
}

/// Bounds of the form: what was not over by `until` ends holds at `end` at the latest.
#[derive(Default)]
struct Bounds {
    all: Vec<(u64, u64, Option<String>)>,
}

impl Bounds {
    fn add(&mut self, until: u64, end: u64) {
        self.all.push((until, end, None));
    }

    /// Makes each end the least of it and those that are over later.
    fn close(&mut self) {
        self.all.sort();
        let mut least = (NEVER, None);
        for (_, end, by) in self.all.iter_mut().rev() {
            if *end < least.0 {
                least = (*end, by.clone());
            }
            (*end, *by) = least.clone();
        }
    }

    /// The end that is set to what began at this moment.
    fn after(&self, from: u64) -> u64 {
        self.find(from).map_or(NEVER, |(_, end, _)| *end)
    }

    fn find(&self, from: u64) -> Option<&(u64, u64, Option<String>)> {
        let at = self.all.partition_point(|(until, ..)| *until < from);
        self.all.get(at)
    }
}

/// What may end the holds of a lock, whoever has it.
pub struct Ends {
    bounds: Bounds,
    /// Those of masters that were replaced, which end nothing that all replicas had.
    switches: Bounds,
}

impl Ends {
    pub fn new(past: &Past, db: u32, key: &str) -> Self {
        let mut bounds = Bounds::default();
        let mut switched = Bounds::default();
        for fault in &past.faults {
            let here = fault.db == db && fault.keys.iter().any(|one| one == key);
            let strict = past.strict.is_some();
            let kind = Some(fault.kind.clone()).filter(|_| !strict);
            if switches(&fault.kind) {
                switched.all.push((fault.end, fault.begin, kind));
            } else if strict && !past.at_rest(fault.begin) {
                // Nothing is excused.
            } else if ends_all(&fault.kind) {
                bounds.all.push((fault.end, fault.begin, kind));
            } else if here && ends_key(&fault.kind) {
                // What PEXPIRE leaves of a lease runs by the clock too.
                let (span, left) = ((fault.begin, fault.end), fault.ms * 1000);
                let left = left.saturating_sub(ROUNDING);
                let over = clocks::lease_ends(past, fault.server, span, left);
                bounds.all.push((fault.end, over, kind));
            }
        }
        bounds.close();
        switched.close();
        let switches = switched;
        Self { bounds, switches }
    }

    /// The first of them that may have ended what was asked for then.
    fn first(&self, call: u64, all: bool) -> Option<&(u64, u64, Option<String>)> {
        let switched = self.switches.find(call).filter(|_| all);
        let mut both = self.bounds.find(call).into_iter().chain(switched);
        let first = both.next()?;
        Some(both.fold(
            first,
            |one, other| if other.1 < one.1 { other } else { one },
        ))
    }
}

/// What one owner did itself that may have ended its holds on a lock.
struct Own {
    /// A release of a mode ends holds of that mode only.
    released: [Bounds; 4],
    /// And one that names a token, and is answered by then, only those that have it, or had
    /// another before the server forgot it.
    by_token: Vec<(i64, u64, Bounds)>,
    common: Bounds,
    /// Renewals, with what steps of the clock make of them.
    stepped: Bounds,
    /// When connections that watch its holds may be taken for silent. What was asked for goes on.
    silent: Bounds,
    /// Connections took its holds over from others, and may have left them unwatched.
    rebinds: bool,
}

impl Own {
    fn new(past: &Past, ops: &[usize]) -> Self {
        let all = || ops.iter().map(|at| &past.ops[*at]);
        let watched = all().any(|asked| asked.request.watchdog);
        let mut own = Self {
            released: Default::default(),
            by_token: Vec::new(),
            common: Bounds::default(),
            stepped: Bounds::default(),
            silent: Bounds::default(),
            rebinds: all().any(|asked| asked.request.notify.is_some() && !asked.request.watchdog),
        };
        for asked in all().filter(|asked| !matches!(asked.op.out, Out::Error(_))) {
            own.add(past, asked, watched);
        }
        own.released.iter_mut().for_each(Bounds::close);
        own.common.close();
        own.stepped.close();
        own.silent.close();
        own
    }

    fn add(&mut self, past: &Past, asked: &Asked, watched: bool) {
        let (request, span) = (&asked.request, (asked.done, asked.op.call));
        if request.releases() {
            let left = match asked.op.out {
                Out::Int(left) => left,
                _ => 0,
            };
            let many = request.verb == Verb::Mrelease || request.mode == Mode::Permits;
            match request.if_token {
                Some(token) if request.mode != Mode::Permits => {
                    let mut one = Bounds::default();
                    one.add(span.0, span.1);
                    one.close();
                    self.by_token.push((token, asked.done, one));
                }
                // Too small for a token: it was none, and nothing is given back.
                Some(token) if token < crate::answers::FIRST_TOKEN => (),
                _ if left == 0 || many => self.released[request.mode as usize].add(span.0, span.1),
                _ => (),
            }
        }
        if request.renews() {
            let end = clocks::lease_over(past, asked);
            self.stepped.add(asked.done, end.saturating_sub(ROUNDING));
            let end = end.max(asked.op.call + request.lease_us);
            self.common.add(asked.done, end.saturating_sub(ROUNDING));
        }
        if request.watchdog || (watched && request.notify.is_some()) {
            let (from, by) = past.death(asked.op.conn);
            self.common.add(by, from);
            let silences = silent::silences(past, asked.op.conn).into_iter();
            for (from, by) in silences.filter(|(_, by)| *by > asked.op.call) {
                self.silent.add(by, from.max(asked.op.call));
            }
        }
    }

    fn released(&self, past: &Past, mode: Mode, call: u64, token: Option<i64>) -> u64 {
        let end = self.released[mode as usize].after(call);
        let named = self.by_token.iter().filter(|(one, done, _)| {
            token.is_none_or(|token| token == *one) || past.bonds_cut(call, *done)
        });
        named.map(|(.., one)| one.after(call)).fold(end, u64::min)
    }

    /// When a hold ends by its lease or its connection, as it was granted by this.
    fn lease(&self, past: &Past, asked: &Asked) -> Lease {
        let (call, request) = (asked.op.call, &asked.request);
        let mut end = clocks::lease_over(past, asked);
        let mut natural = end.max(call + request.lease_us).saturating_sub(ROUNDING);
        end = end.saturating_sub(ROUNDING);
        if request.watchdog && request.lease_us >= SAFE_WATCHDOG && !self.rebinds {
            let watched = past.next_rough(call).min(self.silent.after(call));
            natural = natural.max(watched);
            end = end.max(watched.min(clocks::next_jump(past, asked)));
        }
        let natural = natural.min(self.common.after(call));
        let end = end.min(natural).min(self.stepped.after(call));
        Lease { natural, end }
    }
}

/// Until when a lease runs: if no clock is stepped, and as they are.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Lease {
    natural: u64,
    end: u64,
}

fn grants(asked: &Asked) -> bool {
    match asked.op.out {
        Out::Int(_) => asked.request.acquires() || asked.request.renews(),
        _ => false,
    }
}

/// A release of some permits, with no other release beside it: what it tells is left.
fn gives_some_back(past: &Past, ops: &[usize], at: usize) -> bool {
    let asked = &past.ops[at];
    if asked.request.verb != Verb::Release || asked.mode() != Mode::Permits {
        return false;
    }
    let mut others = ops
        .iter()
        .filter(|one| **one != at)
        .map(|at| &past.ops[*at]);
    !others
        .any(|one| one.request.releases() && one.op.call <= asked.done && one.done >= asked.op.call)
}

/// The lease of what an owner holds at this moment: its last grant's, at least. Those before
/// may be of holds that have ended since; of two under way at once either may be the last.
fn last_lease(past: &Past, ops: &[usize], own: &Own, at: u64) -> Lease {
    let all = ops.iter().map(|at| &past.ops[*at]);
    let grants = || {
        all.clone()
            .filter(|one| grants(one) && one.op.reply <= Some(at))
    };
    let last = grants().map(|one| one.op.call).max();
    let could_be = grants().filter(|one| one.op.reply >= last);
    could_be
        .map(|one| own.lease(past, one))
        .min()
        .unwrap_or_default()
}

/// All that one owner surely held of a lock, by what it was told in `ops`.
pub fn certain(past: &Past, ends: &Ends, ops: &[usize]) -> Vec<Hold> {
    let mut holds = accounts(past, ends, ops);
    holds.retain(Hold::lasts);
    holds
}

/// The same, with those that surely would have been there but for a fault.
pub fn accounts(past: &Past, ends: &Ends, ops: &[usize]) -> Vec<Hold> {
    let own = Own::new(past, ops);
    let mut holds = Vec::new();
    for at in ops {
        let asked = &past.ops[*at];
        let (Some(start), call, mode) = (asked.op.reply, asked.op.call, asked.mode()) else {
            continue;
        };
        let lease = match asked.op.out {
            _ if grants(asked) => own.lease(past, asked),
            Out::Int(1..) if gives_some_back(past, ops, *at) => last_lease(past, ops, &own, call),
            _ => continue,
        };
        // What is left after a release ends by later ones.
        let from = if asked.request.releases() {
            start + 1
        } else {
            call
        };
        let released = own.released(past, mode, from, asked.token());
        let (natural, leased) = (lease.natural.min(released), lease.end.min(released));
        let leased = past.strict.map_or(leased, |_| natural);
        let begun = strict::begun(past, *at).filter(|_| past.round.wait > 0);
        let start = begun.unwrap_or(start);
        let fault = ends.first(call, begun.is_none());
        let end = leased.min(fault.map_or(NEVER, |(_, end, _)| *end));
        // Who waits for the replicas has not begun before they have it.
        let natural = match past.round.wait > 0 && begun.is_none() {
            true => end,
            false => natural,
        };
        if natural <= start {
            continue;
        }
        let by = fault
            .filter(|_| end < leased)
            .map_or((end < natural).then(|| FORWARD.to_owned()), |(.., by)| {
                by.clone()
            });
        let (permits, adds) = match (asked.request.verb, &asked.op.out) {
            (Verb::Release, Out::Int(left)) => (*left, false),
            (Verb::Acquire, _) => (asked.request.permits, !asked.request.once),
            _ => (0, true),
        };
        holds.push(Hold {
            op: *at,
            mode,
            start,
            end,
            natural,
            by,
            permits,
            adds,
        });
    }
    holds
}
