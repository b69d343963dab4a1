//! Attends to what is due without a command of a client: notes that callbacks
//! left, leases that ended, waits whose time is over.

use super::decide::attend;
use super::gate::{self, Gate};
use super::keyspace::{Asked, ServerKeyspace};
use super::schedule;
use crate::config;
use crate::lock::{
    self, Cause, Core, Decision, Key, Keyspace, Kind, Listening, Note, Notices, Now,
};
use crate::server::keys::slots::{self, Slot};
use crate::server::outbound::replication::By;
use crate::server::outbound::tell::{tell, Found};
use crate::server::outbound::{answers, publish};
use crate::server::shell::Shell;
use crate::server::state::Wakeup;
use crate::server::sys::{Access, Ctx, Given};

/// So many leases or waits are ended before a look at the clock.
const BATCH: usize = 32;

/// Each kind of work goes on for so many us, and then other clients have a turn.
const SLICE_US: i64 = 1500;

/// So many watched keys are looked at in one go, and of those that are away.
const CHECKED: usize = 500;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The module's timer: all that is due.
    Timer,
    /// After a command that changed keys of ours: the notes.
    Job,
    /// At the start of a command of ours: the notes are heard, so that it finds its
    /// locks as they would be had all been attended to.
    Command,
}

/// Does what is due. What the gate forbids stays due.
pub fn serve(shell: &Shell, ctx: Ctx<'_>, occasion: Occasion) {
    let by = match occasion {
        Occasion::Command => By::Command,
        Occasion::Timer | Occasion::Job => By::Ourselves,
    };
    let mut tick = Tick {
        shell,
        ctx,
        ks: ServerKeyspace::new(&Asked::without_command(shell, ctx, by), Access::Write),
        now: shell.clock.now(),
        told: Notices::new(),
        occasion,
    };
    let turns = tick.go_through();
    let mut found = tick.finish(by);
    for (key, shared) in turns {
        let listening = publish::listening(shell, ctx, &key, shared);
        found.push((key, listening.unwrap_or(Listening::Nobody)));
    }
    attend(shell, ctx, by, found);
    if occasion == Occasion::Timer && shell.server.wakeup == Wakeup::ByTimer {
        answers::deliver(shell);
    }
}

/// One turn: each step is written before the next one looks.
struct Tick<'a> {
    shell: &'a Shell,
    ctx: Ctx<'a>,
    ks: ServerKeyspace<'a>,
    now: Now,
    /// The effects so far: written, and not told of yet.
    told: Notices,
    occasion: Occasion,
}

impl<'a> Tick<'a> {
    /// All that is due, in this order. The keys whose subscribers are to be looked at.
    fn go_through(&mut self) -> Vec<(Key, bool)> {
        let (shell, now) = (self.shell, self.now);
        let timer = self.occasion == Occasion::Timer;
        if timer {
            self.time_out();
        }
        let due = shell.has_notes() || schedule::has_away(shell) || schedule::has_ends(shell, now);
        let check = timer && schedule::check_is_due(shell, now);
        let turn = timer && schedule::has_turns(shell, now);
        if !(due || check || turn) {
            return Vec::new();
        }
        let asked = self.occasion == Occasion::Command;
        match gate::look(&shell.pulse, self.ctx, asked) {
            Gate::Open => {}
            Gate::Shut if timer => {
                self.let_lapse();
                return Vec::new();
            }
            Gate::Shut | Gate::Waking => return Vec::new(),
        }
        self.read_notes(timer);
        if timer {
            // A server that stood still renews before it lets a lease end.
            self.renew();
            self.expire();
        }
        if check {
            self.check_watched();
        }
        if turn {
            self.due_turns()
        } else {
            Vec::new()
        }
    }

    /// Decides something, and hands on what has become free.
    fn decide(&mut self, act: impl FnOnce(&mut Decision<'_>)) {
        self.put(|core, ks, now, out| lock::decide(core, ks, now, out, act));
    }

    /// Takes something in, and hands nothing on yet.
    fn note(&mut self, act: impl FnOnce(&mut Decision<'_>)) {
        self.put(|core, ks, now, out| lock::note(core, ks, now, out, act));
    }

    fn put(&mut self, run: impl FnOnce(&mut Core, &mut dyn Keyspace, Now, &mut Notices)) {
        let (ks, told, now) = (&mut self.ks, &mut self.told, self.now);
        let locks = &self.shell.locks;
        locks.decide(|_| now, |core, now| run(core, ks, now, told));
    }

    /// What the core tells, without changing anything.
    fn ask<T: Default>(&self, ask: impl FnOnce(&Core) -> T) -> T {
        self.shell.locks.ask(ask).unwrap_or_default()
    }

    /// Reads the notes, and looks again at keys that were away for a while.
    fn read_notes(&mut self, with_those_away: bool) {
        let notes = self.shell.inbox.take();
        let mut away = Vec::new();
        if with_those_away {
            self.note(|d| away = d.core.take_away(CHECKED));
        }
        let away = away.into_iter();
        let away = away.map(|key| Note::Changed(key, Cause::Unknown));
        self.note(|d| lock::hear(d, away.chain(notes)));
        self.review();
    }

    /// Does a piece of work again and again, until it says that nothing is left of it
    /// or its share of the time is over. What is left is due as before.
    fn in_slices(&mut self, mut piece: impl FnMut(&mut Self) -> bool) {
        let end = self.shell.clock.mono().plus_us(SLICE_US);
        while piece(self) {
            self.now = self.shell.clock.now();
            if self.now.mono >= end {
                return;
            }
        }
    }

    /// Looks at what was heard of keys and connections: the timer in slices, a job once.
    /// A command takes into account what was heard of its own keys when it looks at them;
    /// the rest is not its business, and its slot may be another one.
    fn review(&mut self) {
        if self.occasion == Occasion::Command {
            return self.shell.wake_soon(self.ctx);
        }
        let goes_on = self.occasion == Occasion::Timer;
        self.in_slices(|tick| {
            let mut keys = Vec::new();
            tick.note(|d| keys = d.core.heard_of(BATCH));
            if tick.shell.server.cluster {
                let beside =
                    |core: &Core| [core.closed_bonds(BATCH), core.left_for_later()].concat();
                for key in tick.ask(beside) {
                    tick.is_ours(&key);
                }
            }
            keys.retain(|key| tick.is_ours(key));
            tick.decide(|d| lock::review(d, &keys, BATCH));
            goes_on && tick.ask(Core::is_unsettled)
        });
    }

    fn time_out(&mut self) {
        self.in_slices(|tick| {
            tick.note(|d| lock::time_out(d, BATCH));
            let next = tick.ask(Core::next_timeout);
            next.is_some_and(|at| at <= tick.now.mono)
        });
    }

    fn renew(&mut self) {
        self.in_slices(|tick| {
            let now = tick.now;
            let mut due = tick.ask(|core| core.due_renewals(now, BATCH));
            let mut more = due.len() == BATCH;
            due.retain(|(key, _)| tick.is_ours(key));
            tick.decide(|d| more |= lock::renew_watched(d, &due));
            more
        });
    }

    fn expire(&mut self) {
        self.in_slices(|tick| {
            let now = tick.now;
            let mut due = tick.ask(|core| core.due(now, BATCH));
            let mut more = due.len() == BATCH;
            due.retain(|key| tick.is_ours(key));
            tick.decide(|d| more |= lock::expire(d, &due));
            more
        });
    }

    /// Nothing may be written, but whoever watches a lease that is over is to know.
    fn let_lapse(&mut self) {
        if config::closes_on_loss() {
            self.in_slices(|tick| {
                let mut more = false;
                tick.note(|d| more = lock::let_lapse(d, BATCH));
                more
            });
        }
    }

    fn due_turns(&mut self) -> Vec<(Key, bool)> {
        let now = self.now;
        let mut due = Vec::new();
        self.note(|d| due = d.core.due_turns(now, BATCH));
        due.retain(|(key, _)| self.is_ours(key));
        due
    }

    fn check_watched(&mut self) {
        let round = &self.shell.subscriptions;
        let behind = round.go_on_round(self.now.mono);
        let watched = self.ask(|core| core.watched(behind.as_ref(), CHECKED));
        round.round_came_to(watched.last().cloned());
        let keys = watched.into_iter().map(|(_, (key, _))| key);
        let notes = keys.map(|key| Note::Changed(key, Cause::Unknown));
        self.note(|d| lock::hear(d, notes));
        self.review();
    }

    /// Whether the key is this node's to act on: its slot is, or is on its way and the
    /// key is here. If it is not, what is known of the key's holds is void, and those
    /// who wait for it are looked at again later.
    fn is_ours(&mut self, key: &Key) -> bool {
        self.ks.close();
        if !self.shell.server.cluster {
            return true;
        }
        let mut ours = false;
        match slots::whose(self.ctx, key) {
            Slot::Ours => return true,
            Slot::OnItsWay => {
                self.note(|d| ours = d.ks.look(key, &[]).kind != Kind::Free);
            }
            Slot::Others => {}
        }
        if !ours {
            self.note(|d| {
                d.core.unheard(key);
                lock::forsake(d, key);
                d.core.forget_turn(key);
                if d.core.knows(key.db, &key.name) {
                    d.core.look_again(key);
                }
            });
        }
        ours
    }

    /// Tells of all that was decided. What was found out about subscribers meanwhile.
    fn finish(mut self, by: By) -> Found {
        drop(self.ks);
        let given = Given::default();
        tell(self.shell, self.ctx, by, given, &mut self.told)
    }
}
