//! Steps of servers' wall clocks. Leases run by them: a step forward ends those that run
//! that much sooner, a step back makes them last longer by the step. Nothing else goes by
//! them, but for tokens.

use std::collections::{HashMap, HashSet};

use rlock_torture::history::Fault;

use crate::past::{changes_master, moves_a_slot, starts_anew, Asked, Past, NEVER};

/// What is due on a clock that is set back within this time may not have been noticed, us.
const NOTICED: u64 = 600_000;

/// By how much one clock, or all of them, were ahead when, us.
#[derive(Debug, Default)]
pub struct Clock {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    begin: u64,
    end: u64,
    before: i64,
    after: i64,
}

pub const FORWARD: &str = "clock-forward";
const BACK: &str = "clock-back";

pub fn steps(kind: &str) -> bool {
    [FORWARD, BACK].contains(&kind)
}

impl Clock {
    /// Of faults in their order.
    pub fn new<'a>(faults: impl Iterator<Item = &'a Fault>) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        for fault in faults.filter(|fault| self::steps(&fault.kind)) {
            let before = steps.last().map_or(0, |last| last.after);
            let by = fault.ms as i64 * 1000;
            let after = match fault.kind.as_str() {
                FORWARD => before + by,
                _ => before - by,
            };
            let (begin, end) = (fault.begin, fault.end);
            steps.push(Step {
                begin,
                end,
                before,
                after,
            });
        }
        Self { steps }
    }

    /// By how much it was ahead at some moment of this time, at least and at most.
    fn ahead(&self, from: u64, to: u64) -> (i64, i64) {
        let passed = self.steps.iter().rfind(|step| step.end < from);
        let first = passed.map_or(0, |step| step.after);
        let within = self.steps.iter();
        let within = within.filter(|step| step.begin <= to && step.end >= from);
        let all = within.flat_map(|step| [step.before, step.after]);
        all.fold((first, first), |(least, most), one| {
            (least.min(one), most.max(one))
        })
    }

    /// Times from this moment on, with how far it was ahead: the most, or the least, that
    /// can be believed.
    fn pieces(&self, from: u64, most: bool) -> Vec<(u64, u64, i64)> {
        let mut pieces = Vec::new();
        let (mut begin, mut ahead) = (0, 0);
        for step in &self.steps {
            let early = (step.after > step.before) == most;
            let at = if early { step.begin } else { step.end };
            pieces.push((begin, at, ahead));
            (begin, ahead) = (at, step.after);
        }
        pieces.push((begin, NEVER, ahead));
        pieces.retain(|(_, to, _)| *to >= from);
        pieces
    }

    /// When a lease may be over at the earliest that began in this time.
    pub fn earliest(&self, from: u64, to: u64, lease: u64) -> u64 {
        let due = at(from, self.ahead(from, to).0, lease);
        let mut pieces = self.pieces(from, true).into_iter();
        let over = pieces.find_map(|(begin, end, ahead)| {
            let over = due.saturating_sub(ahead).max(begin as i64) as u64;
            (over <= end).then_some(over)
        });
        over.unwrap_or(NEVER).max(from)
    }

    /// When it surely was over.
    pub fn latest(&self, from: u64, to: u64, lease: u64) -> u64 {
        if to == NEVER {
            return NEVER;
        }
        let due = at(to, self.ahead(from, to).1, lease);
        let mut pieces = self.pieces(from, false).into_iter();
        let over = pieces.find_map(|(begin, end, ahead)| {
            let over = due.saturating_sub(ahead).max(begin as i64) as u64;
            (end == NEVER || over.saturating_add(NOTICED) <= end).then_some(over)
        });
        over.unwrap_or(NEVER)
    }

    /// When the first step forward began after this moment, of those that are as long.
    pub fn next_jump(&self, after: u64, us: u64) -> Option<u64> {
        let long = |step: &&Step| step.end >= after && step.after - step.before >= us as i64;
        let step = self.steps.iter().find(long)?;
        Some(step.begin.max(after))
    }

    /// Until when tokens may be ahead of the right time that were given before `by`.
    pub fn tokens_ahead(&self, by: u64) -> u64 {
        let before = self.steps.iter().filter(|step| step.begin <= by);
        // A token is given as long as the clock is ahead.
        let until = before.filter(|step| step.before > 0);
        let until = until.map(|step| step.end.saturating_add(step.before as u64));
        until.max().unwrap_or(0)
    }
}

fn at(moment: u64, ahead: i64, lease: u64) -> i64 {
    let moment = i64::try_from(moment).unwrap_or(i64::MAX);
    let lease = i64::try_from(lease).unwrap_or(i64::MAX);
    moment.saturating_add(ahead).saturating_add(lease)
}

/// The clocks of all servers.
#[derive(Default)]
pub struct Clocks {
    of: HashMap<u16, Clock>,
    /// All steps forward of any of them, and all those back: a lock that moves from server to
    /// server may meet some of them and not others.
    forward: Clock,
    back: Clock,
    right: Clock,
}

impl Clocks {
    pub fn new(faults: &[Fault]) -> Self {
        let servers: HashSet<u16> = faults.iter().map(|fault| fault.server).collect();
        let of = |server| faults.iter().filter(move |one| one.server == server);
        let clocks = servers.iter().map(|one| (*one, Clock::new(of(*one))));
        let alone = |kind: &'static str| faults.iter().filter(move |one| one.kind == kind);
        Self {
            of: clocks.collect(),
            forward: Clock::new(alone(FORWARD)),
            back: Clock::new(alone(BACK)),
            right: Clock::default(),
        }
    }

    fn of(&self, server: u16) -> &Clock {
        self.of.get(&server).unwrap_or(&self.right)
    }
}

/// Those that a hold may go by which was given by this server, in this time; `moved`: if it
/// came to another.
fn of<'a>(
    past: &'a Past,
    server: u16,
    (from, to): (u64, u64),
    moved: &'a Clock,
) -> impl Iterator<Item = &'a Clock> {
    let moved = past.bonds_cut(from, to).then_some(moved);
    [past.clocks.of(server)].into_iter().chain(moved)
}

/// From when on the lease may be over that was asked for by this.
pub fn lease_over(past: &Past, asked: &Asked) -> u64 {
    let span = (asked.op.call, asked.done);
    lease_ends(past, asked.server, span, asked.request.lease_us)
}

/// From when on a lease may be over that a server writes in this time.
pub fn lease_ends(past: &Past, server: u16, (from, to): (u64, u64), lease: u64) -> u64 {
    let span = (from, from.saturating_add(lease));
    let clocks = of(past, server, span, &past.clocks.forward);
    let all = clocks.map(|clock| clock.earliest(from, to, lease));
    all.min().unwrap_or(from)
}

/// By when a lease surely is over that a server writes in this time.
pub fn lease_gone(past: &Past, server: u16, (from, to): (u64, u64), lease: u64) -> u64 {
    let span = (from, to.saturating_add(lease));
    let clocks = of(past, server, span, &past.clocks.back);
    let all = clocks.map(|clock| clock.latest(from, to, lease));
    all.max().unwrap_or(NEVER)
}

/// When the clock first went ahead by so much that a watchdog may have come too late.
pub fn next_jump(past: &Past, asked: &Asked) -> u64 {
    let from = asked.op.call;
    let clocks = of(past, asked.server, (from, NEVER), &past.clocks.forward);
    let jumps = clocks.filter_map(|clock| clock.next_jump(from, asked.request.lease_us / 4));
    jumps.min().unwrap_or(NEVER)
}

/// Whether a lock may have come from a server whose clock was ahead, so that its counter still is:
/// with its slot, or all of them to a new master.
pub fn came_from_ahead(past: &Past, asked: &Asked) -> bool {
    let to = asked.op.call;
    let keys = &asked.request.keys;
    let moves = past.faults.iter().filter(|fault| {
        let its = |tag: &String| keys.iter().any(|key| key.contains(tag));
        let comes = moves_a_slot(&fault.kind) && fault.keys.iter().any(its);
        fault.begin <= to && (comes || changes_master(&fault.kind))
    });
    let is_ahead = |clock: &Clock, by| clock.tokens_ahead(by) >= to || clock.ahead(by, to).1 > 0;
    let mut others = past.clocks.of.iter();
    others.any(|(server, clock)| {
        *server != asked.server && moves.clone().any(|moved| is_ahead(clock, moved.end))
    })
}

/// Whether a server that was started anew in between may give this one a smaller token
/// than one before: its clock is behind those that it had given.
pub fn tokens_fall(past: &Past, from: u64, asked: &Asked) -> bool {
    let (server, to) = (asked.server, asked.op.call);
    let mut starts = past.faults.iter().filter(|fault| {
        let anew = starts_anew(&fault.kind) && fault.server == server;
        // It may have gone on for a while before it ended.
        anew && fault.end >= from && fault.begin <= to
    });
    let clock = past.clocks.of(server);
    starts.any(|start| clock.tokens_ahead(start.end) >= to)
}
