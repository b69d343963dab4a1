//! The one loop of what is due without a request: what was noted, waits whose time is
//! over, leases that end or are to be renewed, and in which order.
//!
//! Notes are read in two parts. First all of them are heard: what has moved is
//! moved, and of each key remains what weighs most. Then the keys are looked at, some
//! at a time where there are very many ([`review`]). A note is older than
//! anything that is done because of it, so whatever has ended is ended before any
//! lock is handed on, as far as it is looked at in one go. Until a key's time comes it
//! is as if nothing had been heard; only whoever looks at the key itself finds what
//! was heard of it taken into account ([`reconcile::attend`]).

mod notes;

use super::{deadlock, grant, leaving, ours, reconcile, renewals, subscribers, timeouts, watchdog};
use super::{Cause, Core, Decider, Decision, Key, Listening, MonoUs, Note, Notice, Now};
use notes::{hear, review};

/// Leases and waits of so many keys are ended before a look at the clock.
const BATCH: usize = 32;

/// All that is due goes on for so many us, and then other clients have a turn. Each kind of
/// work may take half of what is left, and goes on by a batch even where nothing is.
const TURN_US: i64 = 3000;

/// With so much to be told of, which can take longer than to decide it, they have one too.
const MOST_TOLD: usize = 512;

/// So many leases are ended at the start of a command: more than one begins by it, so that
/// however many commands come before the timer's turn, what is due does not pile up.
const FEW: usize = 4;

/// So many keys are looked at in one go of those that are away.
const AWAY: usize = 500;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The timer: all that is due.
    Timer,
    /// At the start of a command of ours: the notes are heard, so that it finds its
    /// locks as they would be had all been attended to.
    Command,
}

/// Whether locks may be granted and expired now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// The server stood still and may not have heard yet what happened meanwhile:
    /// what is due waits, for some ms as a rule.
    Waking,
    Shut,
}

/// What the loop asks of the outside, beside the keyspace.
pub trait Outside {
    /// Reads both clocks.
    fn now(&self) -> Now;
    /// Looks at the gate, which costs something.
    fn gate(&self) -> Gate;
    fn has_notes(&self) -> bool;
    /// The notes, in the order in which things happened. They are heard next.
    fn take_notes(&self) -> Vec<Note>;
    /// Nobody tells when a key is overwritten: watched ones are looked at now and then.
    fn misses_overwrites(&self) -> bool;
    /// Connections are closed that have lost a watchdog hold.
    fn closes_on_loss(&self) -> bool;
}

/// Does what is due. What the gate forbids, or what takes too long, stays due.
pub fn run(with: &mut Decider<'_>, outside: &impl Outside, occasion: Occasion) {
    let end = with.now.mono.plus_us(TURN_US);
    let mut run = Run {
        with,
        outside,
        occasion,
        end,
    };
    run.all();
    if run.is_check_due() {
        run.check_watched();
    }
}

/// At the start of a command of ours that writes: a few leases are ended that are due.
pub fn end_few(with: &mut Decider<'_>) {
    // Before those have left whose connections are closed nothing is handed on.
    if !with.core.gone.is_empty() {
        return;
    }
    let due = with.core.locks.due(with.now, FEW);
    // What the timer is late for may be something else.
    if !due.is_empty() {
        with.decide(|d| reconcile::expire(d, &due));
    }
}

/// Takes in what was found of those who wait by subscription, when all else is done: a
/// request of the very command that asked can be granted by it, and must wait by then.
pub fn attend(with: &mut Decider<'_>, found: impl IntoIterator<Item = (Key, Listening)>) {
    for (key, listening) in found {
        with.decide(|d| subscribers::subscribed(d, &key, listening));
    }
}

/// One turn: each step is written before the next one looks.
struct Run<'a, 'b, O> {
    with: &'a mut Decider<'b>,
    outside: &'a O,
    occasion: Occasion,
    /// When others are to have a turn.
    end: MonoUs,
}

impl<O: Outside> Run<'_, '_, O> {
    fn is_timer(&self) -> bool {
        self.occasion == Occasion::Timer
    }

    /// All that is due, in this order.
    fn all(&mut self) {
        if self.is_timer() {
            if self.let_leave() {
                return;
            }
            self.time_out();
            self.send_away();
            self.let_go();
            self.end_rest(false);
        }
        if !self.is_anything_due() {
            return;
        }
        match self.outside.gate() {
            Gate::Open => {}
            Gate::Shut if self.is_timer() => return self.let_lapse(),
            Gate::Shut | Gate::Waking => return,
        }
        self.read_notes();
        if self.is_timer() {
            // A server that stood still renews before it lets a lease end.
            self.renew();
            self.expire();
            self.end_rest(true);
            self.read_pools();
            self.look_at_turns();
            self.inquire();
        }
    }

    fn is_inquiry_due(&self) -> bool {
        let next = self.with.core.next_inquiry();
        self.is_timer() && next.is_some_and(|at| at <= self.with.now.mono)
    }

    /// Who may wait in a cycle.
    fn inquire(&mut self) {
        if self.is_inquiry_due() {
            self.in_slices(|run| run.with.decide(deadlock::inquire));
        }
    }

    fn is_check_due(&self) -> bool {
        let is_due = || self.with.core.watchdogs.is_round_due(self.with.now);
        self.is_timer() && self.outside.misses_overwrites() && is_due()
    }

    /// Notes, keys that are away, leases that end or are to be renewed; for the timer
    /// also turns that are to be looked at.
    fn is_anything_due(&self) -> bool {
        let (core, now) = (&self.with.core, self.with.now);
        let is_turn_due = || core.next_turn().is_some_and(|at| at <= now.mono);
        self.outside.has_notes()
            || core.has_due()
            || self.is_timer() && core.any_half_done()
            || !core.away.is_empty()
            || core.next_end().is_some_and(|at| at <= now.wall_ms())
            || self.is_timer() && is_turn_due()
            || self.is_inquiry_due()
    }

    /// Does a piece of work again and again, until it says that nothing is left of it
    /// or its share of the turn is over, or very much is to be told. What is left is due as
    /// before.
    fn in_slices(&mut self, mut piece: impl FnMut(&mut Self) -> bool) {
        let left = self.end.since(self.with.now.mono).div_euclid(2);
        let end = self.with.now.mono.plus_us(left);
        while piece(self) {
            self.with.now = self.outside.now();
            if self.with.now.mono >= end || self.with.out.len() >= MOST_TOLD {
                return;
            }
        }
    }

    /// Those whose connections have closed leave first. Whether some are left: nothing can be
    /// decided before they have gone too.
    fn let_leave(&mut self) -> bool {
        if self.with.core.gone.is_empty() {
            return false;
        }
        self.in_slices(|run| leaving::let_leave(run.with.core, run.with.now, BATCH));
        !self.with.core.gone.is_empty()
    }

    /// These waits gain nothing by it: the gate need not be open.
    fn time_out(&mut self) {
        self.in_slices(|run| {
            run.with.note(|d| {
                for id in d.core.queues.over(d.now, BATCH) {
                    timeouts::timed_out(d, id);
                }
                d.core.queues.kept().forget(d.now.mono, BATCH);
            });
            let next = run.with.core.next_over();
            next.is_some_and(|at| at <= run.with.now.mono)
        });
    }

    /// Nor do these.
    fn send_away(&mut self) {
        if self.with.core.queues.any_sent_away() {
            self.in_slices(|run| {
                run.with.note(|d| {
                    let (next, over) = d.core.queues.take_sent_away(BATCH);
                    for (id, refusal) in next {
                        let keys = d.core.queues.get(id).map(|waiter| waiter.keys.clone());
                        grant::refuse(d, id, refusal);
                        // Whom they kept back is judged when they have gone.
                        keys.iter().flatten().for_each(|key| d.look_later(key));
                    }
                    if let Some(key) = over {
                        d.look_later(&key);
                    }
                });
                run.with.core.queues.any_sent_away()
            });
        }
    }

    /// Nor is anything to be found at keys of which all that is known is void.
    fn let_go(&mut self) {
        if self.with.core.heard.is_any_void() {
            self.in_slices(|run| {
                let core = &mut *run.with.core;
                let keys = core.heard.next_void(&mut core.locks, &core.queues, BATCH);
                let attend =
                    |d: &mut Decision<'_>| keys.iter().for_each(|key| reconcile::attend(d, key));
                run.with.note(attend);
                run.with.core.heard.is_any_void()
            });
        }
    }

    /// What follows for each of very many whose lock has ended; with lease keys that go only
    /// where that may be written.
    fn end_rest(&mut self, writes: bool) {
        let is_next = |core: &Core| {
            let ends = core.locks.is_any_ending();
            ends && (writes || !core.locks.is_ending_written()) || !core.losses.is_empty()
        };
        if is_next(self.with.core) {
            self.in_slices(|run| {
                run.with.note(|d| {
                    watchdog::tell_some(d, BATCH);
                    if writes || !d.core.locks.is_ending_written() {
                        reconcile::end_some(d, BATCH);
                    }
                });
                is_next(run.with.core)
            });
        }
    }

    /// Hears the notes, and looks again at keys that were away for a while.
    fn read_notes(&mut self) {
        let most = if self.is_timer() { AWAY } else { 0 };
        let away = self.with.core.away.take(most).into_iter();
        let away = away.map(|key| Note::Changed(key, Cause::Unknown));
        let all = away.chain(self.outside.take_notes());
        self.with.note(|d| hear(d, all));
        self.review();
    }

    /// Looks at what was heard of keys and connections. A command takes into account what was heard of its own keys when it looks at them;
    /// the rest is not its business, and its slot may be another one.
    fn review(&mut self) {
        if !self.is_timer() {
            return;
        }
        self.in_slices(|run| {
            let core = &mut *run.with.core;
            let (locks, queues) = (&mut core.locks, &core.queues);
            let mut keys = core.heard.next_keys(locks, queues, BATCH);
            if run.with.ks.in_cluster() {
                let closed = core.heard.closed.iter();
                let bonds = closed.flat_map(|client| core.watchdogs.of_client(*client));
                let bonds = bonds.take(BATCH).map(|(key, _)| key.clone());
                for key in bonds.chain(core.due.keys()).collect::<Vec<_>>() {
                    run.is_ours(&key);
                }
            }
            keys.retain(|key| run.is_ours(key));
            run.with.decide(|d| review(d, &keys, BATCH));
            run.with.core.has_due()
        });
    }

    fn renew(&mut self) {
        self.in_slices(|run| {
            let mut due = run.with.core.watchdogs.due(run.with.now, BATCH);
            let more = due.len() == BATCH;
            due.retain(|(key, _)| run.is_ours(key));
            run.with.decide(|d| renewals::renew_watched(d, &due)) || more
        });
    }

    fn expire(&mut self) {
        self.in_slices(|run| {
            let mut due = run.with.core.locks.due(run.with.now, BATCH);
            let more = due.len() == BATCH;
            due.retain(|key| run.is_ours(key));
            run.with.decide(|d| reconcile::expire(d, &due)) || more
        });
    }

    /// Locks with permits of which not all who hold them are known.
    fn read_pools(&mut self) {
        if !self.with.core.any_unread() {
            return;
        }
        self.in_slices(|run| {
            let Some(key) = run.with.core.pools.next().cloned() else {
                return false;
            };
            if run.is_ours(&key) {
                run.with.decide(|d| reconcile::read_on(d, &key));
            } else {
                run.with.core.pools.forget(&key);
            }
            run.with.core.any_unread()
        });
    }

    /// Nothing may be written, but whoever watches a lease that is over is to know.
    fn let_lapse(&mut self) {
        let all = self.outside.closes_on_loss();
        self.in_slices(|run| run.with.note(|d| watchdog::let_lapse(d, BATCH, all)));
    }

    /// Whether watched keys are still as they are known; of those that are not it is heard, for the
    /// next turn. To look needs no gate, which costs a command there.
    fn check_watched(&mut self) {
        let watched = self.with.core.watchdogs.go_on_round(self.with.now);
        self.with.note(|d| {
            for (key, owner) in watched {
                if reconcile::differs(d, &key, &owner) {
                    d.core.heard.of(key, Cause::Unknown);
                }
            }
        });
    }

    /// Whether anybody listens still is found out when all is told.
    fn look_at_turns(&mut self) {
        let now = self.with.now;
        for (key, shared) in self.with.core.subscribers.take_due(now, BATCH) {
            if self.is_ours(&key) {
                self.with.out.push(Notice::WhoListens { key, shared });
            }
        }
    }

    fn is_ours(&mut self, key: &Key) -> bool {
        !self.with.ks.in_cluster() || self.with.note(|d| ours::is_ours(d, key))
    }
}
