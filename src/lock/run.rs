//! The one loop of what is due without a request, by the classes of the [agenda](super::agenda).
//!
//! Notes are read in two parts. First all of them are heard: what has moved is
//! moved, and of each key remains what weighs most. Then the keys are looked at, some
//! at a time where there are very many ([`review`]). A note is older than
//! anything that is done because of it, so whatever has ended is ended before any
//! lock is handed on, as far as it is looked at in one go. Until a key's time comes it
//! is as if nothing had been heard; only whoever looks at the key itself finds what
//! was heard of it taken into account ([`reconcile::attend`]).

mod notes;

use super::agenda::{Due, When};
use super::{deadlock, grant, head, leaving, ours, reconcile, renewals, silence, subscribers};
use super::{timeouts, wanted, watchdog};
use super::{Cause, Decider, Decision, Key, Listening, MonoUs, Note, Notice, Now};
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
    /// All that is due, by the [order of classes](Due::ORDER).
    fn all(&mut self) {
        let mut gate = None;
        for due in Due::ORDER {
            if !self.is_due(due) {
                continue;
            }
            if due.needs_gate() {
                let look = || self.outside.gate();
                if *gate.get_or_insert_with(look) != Gate::Open {
                    continue;
                }
            }
            self.in_slices(|run| run.piece(due));
            if due == Due::Leaves && self.is_due(due) {
                return;
            }
        }
        if gate == Some(Gate::Shut) && self.is_timer() {
            self.let_lapse();
        }
    }

    fn is_timer(&self) -> bool {
        self.occasion == Occasion::Timer
    }

    fn is_due(&self, due: Due) -> bool {
        if !self.is_timer() && !due.is_of_commands() {
            return false;
        }
        let now = self.with.now;
        match due {
            Due::Notes => self.outside.has_notes(),
            Due::Rounds => {
                self.outside.misses_overwrites() && self.with.core.watchdogs.is_round_due(now)
            }
            _ => due.next(self.with.core).is_some_and(|when| match when {
                When::Now | When::Within(_) => true,
                When::At(at) => at <= now.mono,
                When::AtWall(at) => at <= now.wall_ms(),
            }),
        }
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

    /// A piece of a class of what is due. Whether more is.
    fn piece(&mut self, due: Due) -> bool {
        match due {
            Due::Leaves => leaving::let_leave(self.with.core, self.with.now, BATCH),
            Due::TimesOut => self.note(due, |d| {
                for id in d.core.queues.over(d.now, BATCH) {
                    timeouts::timed_out(d, id);
                }
                d.core.queues.kept().forget(d.now.mono, BATCH);
            }),
            Due::SentAway => self.note(due, send_away),
            Due::Void => self.note(due, |d| {
                let core = &mut *d.core;
                let keys = core.heard.next_void(&core.locks, &core.queues, BATCH);
                keys.iter().for_each(|key| reconcile::attend(d, key));
            }),
            Due::Endings | Due::WrittenEndings => self.note(due, |d| {
                watchdog::tell_some(d, BATCH);
                if due.needs_gate() || !d.core.locks.is_ending_written() {
                    reconcile::end_some(d, BATCH);
                }
            }),
            Due::Away => {
                let away = self.with.core.away.take(AWAY).into_iter();
                let away = away.map(|key| Note::Changed(key, Cause::Unknown));
                self.with.note(|d| hear(d, away));
                false
            }
            Due::Notes => {
                let notes = self.outside.take_notes();
                self.with.note(|d| hear(d, notes));
                false
            }
            Due::Heard => self.review(),
            Due::Renewals => self.renew(),
            Due::Ends => self.expire(),
            Due::Silence => self.end_silent(),
            Due::Unread => self.read_on(),
            Due::Turns => self.look_at_turns(),
            Due::Hints => self.tell_hints(),
            Due::Inquiry => self.with.decide(deadlock::inquire),
            Due::Rounds => self.check_watched(),
        }
    }

    /// A piece that grants nothing. Whether its class is due still.
    fn note(&mut self, due: Due, piece: impl FnOnce(&mut Decision<'_>)) -> bool {
        self.with.note(piece);
        self.is_due(due)
    }

    /// Looks at what was heard of keys and connections.
    fn review(&mut self) -> bool {
        let core = &mut *self.with.core;
        let mut keys = core.heard.next_keys(&core.locks, &core.queues, BATCH);
        if self.with.ks.in_cluster() {
            let closed = core.heard.closed.iter();
            let bonds = closed.flat_map(|client| core.watchdogs.of_client(*client));
            let bonds = bonds.take(BATCH).map(|(key, _)| key.clone());
            for key in bonds.chain(core.due.keys()).collect::<Vec<_>>() {
                self.is_ours(&key);
            }
        }
        keys.retain(|key| self.is_ours(key));
        self.with.decide(|d| review(d, &keys, BATCH));
        self.with.core.has_due()
    }

    fn renew(&mut self) -> bool {
        let mut due = self.with.core.watchdogs.due(self.with.now, BATCH);
        let more = due.len() == BATCH;
        due.retain(|(key, _)| self.is_ours(key));
        self.with.decide(|d| renewals::renew_watched(d, &due)) || more
    }

    fn expire(&mut self) -> bool {
        let mut due = self.with.core.locks.due(self.with.now, BATCH);
        let more = due.len() == BATCH;
        due.retain(|key| self.is_ours(key));
        self.with.decide(|d| reconcile::expire(d, &due)) || more
    }

    /// Ends holds of those who are silent, each before the next is looked at: whoever waits has it by
    /// then, and others may keep theirs.
    fn end_silent(&mut self) -> bool {
        for (client, (key, owner)) in silence::next(self.with.core, self.with.now, BATCH) {
            let may_end = silence::may_end(self.with.core, self.with.now, client, &key, &owner);
            // While its slot is on its way nobody is silent.
            if !may_end || !self.is_ours(&key) || !self.with.ks.slot_stays(&key) {
                continue;
            }
            if let Some(asked) = head::ask_who_listens(self.with.core, &key) {
                self.with.out.push(asked);
            } else if head::keeps_out(self.with.core, &key, &owner) {
                self.with.decide(|d| silence::end(d, client, &key, &owner));
            }
        }
        self.is_due(Due::Silence)
    }

    /// Reads on a lock with permits, or of very many readers.
    fn read_on(&mut self) -> bool {
        let Some(key) = self.with.core.pools.next().cloned() else {
            return false;
        };
        if self.is_ours(&key) {
            self.with.decide(|d| reconcile::read_on(d, &key));
        } else {
            self.with.core.pools.forget(&key);
        }
        self.with.core.any_unread()
    }

    /// Nothing may be written, but whoever watches a lease that is over is to know.
    fn let_lapse(&mut self) {
        let all = self.outside.closes_on_loss();
        self.in_slices(|run| run.with.note(|d| watchdog::let_lapse(d, BATCH, all)));
    }

    /// Whether watched keys are still as they are known.
    fn check_watched(&mut self) -> bool {
        let watched = self.with.core.watchdogs.go_on_round(self.with.now);
        self.with.note(|d| {
            for (key, owner) in watched {
                if reconcile::differs(d, &key, &owner) {
                    d.core.heard.of(key, Cause::Unknown);
                }
            }
        });
        false
    }

    /// Whether anybody listens still is found out when all is told.
    fn look_at_turns(&mut self) -> bool {
        let now = self.with.now;
        for (key, shared) in self.with.core.subscribers.take_due(now, BATCH) {
            if self.is_ours(&key) {
                self.with.out.push(Notice::WhoListens { key, shared });
            }
        }
        false
    }

    /// Who is to know that somebody waits is told, and told again.
    fn tell_hints(&mut self) -> bool {
        let now = self.with.now;
        wanted::look(self.with.core, self.with.out, now);
        let due = self.with.core.watchdogs.hints.take_due(now, BATCH);
        for bond in &due {
            if self.is_ours(&bond.0) {
                wanted::look_again(self.with.core, self.with.out, now, bond);
            }
        }
        due.len() == BATCH || self.with.core.watchdogs.hints.is_stirred()
    }

    fn is_ours(&mut self, key: &Key) -> bool {
        !self.with.ks.in_cluster() || self.with.note(|d| ours::is_ours(d, key))
    }
}

fn send_away(d: &mut Decision<'_>) {
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
}
