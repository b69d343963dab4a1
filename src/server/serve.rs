//! Attends to what is due without a command of a client: notes that callbacks
//! left, leases that ended, waits whose time is over.

use super::blocking;
use super::closing;
use super::effects;
use super::ffi::{Ctx, Given};
use super::gate::{self, Gate};
use super::keyspace::{Access, ServerKeyspace};
use super::shell::Shell;
use super::slots::{self, Slot};
use super::timer;
use super::turns;
use super::version::Wakeup;
use super::watching;
use crate::config;
use crate::lock::{self, Cause, Core, Decision, Effects, Key, Kind, Note, Now};

/// So many leases or waits are ended before a look at the clock.
const BATCH: usize = 32;

/// Each kind of work goes on for so many us, and then other clients have a turn.
const SLICE_US: i64 = 1500;

/// So many watched keys are looked at in one go, and of those that are away.
const CHECKED: usize = 500;

/// While the gate is shut and something is due, look again after so many ms.
const GATE_POLL_MS: i64 = 10;

/// A key whose slot is on its way to another node is looked at after so many ms: it
/// may come back.
const AWAY_POLL_MS: i64 = 100;

/// Where the server does not tell of overwritten keys, watched ones are looked at
/// every so many ms.
pub const CHECK_MS: i64 = 100;

/// With nobody waiting for so long, client events are let go.
pub const IDLE_MS: i64 = 1000;

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

/// Reads the notes if there are any, at the start of a command.
pub fn attend(shell: &'static Shell, ctx: Ctx) {
    if has_notes(shell) {
        serve(shell, ctx, Occasion::Command);
    }
}

/// Does what is due. What the gate forbids stays due.
pub fn serve(shell: &'static Shell, ctx: Ctx, occasion: Occasion) {
    let mut tick = Tick {
        shell,
        ctx,
        ks: ServerKeyspace::new(shell, ctx, Access::Write, Given::default()),
        now: shell.now(),
        told: Effects::new(),
        occasion,
    };
    if occasion == Occasion::Timer {
        tick.time_out();
    }
    let due = has_notes(shell) || has_away(shell) || has_ends(shell, tick.now);
    let check = occasion == Occasion::Timer && check_is_due(shell, tick.now);
    let turn = occasion == Occasion::Timer && has_turns(shell, tick.now);
    let mut turns = Vec::new();
    let gate =
        (due || check || turn).then(|| gate::look(shell, ctx, occasion == Occasion::Command));
    match gate {
        Some(Gate::Open) => {
            tick.read_notes(occasion == Occasion::Timer);
            if occasion == Occasion::Timer {
                // A server that stood still renews before it lets a lease end.
                tick.renew();
                tick.expire();
            }
            if check {
                tick.check_watched();
            }
            if turn {
                turns = tick.due_turns();
            }
        }
        Some(Gate::Shut) if occasion == Occasion::Timer => tick.let_lapse(),
        Some(_) | None => {}
    }
    tick.finish();
    turns::look(shell, ctx, turns);
    turns::attend(shell, ctx);
    if occasion == Occasion::Timer {
        if shell.server.wakeup == Wakeup::ByTimer {
            blocking::deliver(shell);
        }
        watching::relax(shell, ctx);
    }
}

/// Arms the timer for whatever comes next, after a turn of it.
pub fn arm_for_next(shell: &Shell, ctx: Ctx) {
    let now = shell.now();
    // What is overdue right after a turn waits for the gate or the next batch.
    let overdue = || match gate::look(shell, ctx, false) {
        Gate::Open => 1,
        Gate::Waking | Gate::Shut => GATE_POLL_MS,
    };
    if let Some(ms) = next_ms(shell, now, overdue) {
        timer::arm(shell, ctx, now, ms);
    }
}

/// Arms the timer if anything is to come: a fault may have kept it from being armed.
pub fn arm_if_forgotten(shell: &Shell, ctx: Ctx, now: Now) {
    if let Some(ms) = next_ms(shell, now, || 0) {
        timer::arm(shell, ctx, now, ms);
    }
}

/// In how many ms the timer has something to do. `overdue`: when to look again at
/// what is due already.
fn next_ms(shell: &Shell, now: Now, overdue: impl Fn() -> i64) -> Option<i64> {
    let lease = next_expiry_ms(shell, now).map(|ms| if ms > 0 { ms } else { overdue() });
    let renewal = next_renewal_ms(shell, now).map(|ms| if ms > 0 { ms } else { overdue() });
    let check = checks_watched(shell).then_some(CHECK_MS);
    let wait = next_timeout_ms(shell, now);
    let notes = has_notes(shell).then(&overdue);
    let away = has_away(shell).then_some(AWAY_POLL_MS);
    let idle = shell.watching_clients.get().then_some(IDLE_MS);
    let turn = next_turn_ms(shell, now).map(|ms| if ms > 0 { ms } else { overdue() });
    let closing = closing::is_due(shell).then_some(1);
    let all = [
        lease, renewal, check, wait, turn, notes, away, idle, closing,
    ];
    all.into_iter().flatten().min()
}

/// Arms the timer after a command; costs little when it is armed early enough.
pub fn arm_after_command(shell: &Shell, ctx: Ctx) {
    let (expiry, timeout, watching, unsettled) = match shell.core.try_borrow() {
        Ok(core) => {
            let ends = [core.next_expiry(), core.next_renewal()];
            let first = ends.into_iter().flatten().min();
            let watching = core.is_watching();
            (first, core.next_timeout(), watching, core.is_unsettled())
        }
        Err(_) => return,
    };
    // A waiter with WATCHDOG may have been granted.
    if watching && !shell.watching_overwrites.get() {
        watching::update(shell, ctx);
    }
    if unsettled {
        timer::arm_now(shell, ctx);
    }
    if let Some(at) = expiry.filter(|at| !timer::fires_by(shell, *at)) {
        let now = shell.now();
        timer::arm(shell, ctx, now, at.saturating_sub(now.wall_ms()));
    }
    if timeout.is_some() {
        let now = shell.now();
        if let Some(ms) = next_timeout_ms(shell, now) {
            timer::arm(shell, ctx, now, ms);
        }
    }
    arm_for_turns(shell, ctx);
}

/// Arms the timer for the turns of those who wait by subscription.
fn arm_for_turns(shell: &Shell, ctx: Ctx) {
    if shell
        .core
        .try_borrow()
        .is_ok_and(|core| core.next_turn().is_some())
    {
        let now = shell.now();
        if let Some(ms) = next_turn_ms(shell, now) {
            timer::arm(shell, ctx, now, ms);
        }
    }
}

fn has_notes(shell: &Shell) -> bool {
    let inbox = shell.inbox.try_borrow();
    let unsettled = shell
        .core
        .try_borrow()
        .is_ok_and(|core| core.is_unsettled());
    unsettled || inbox.is_ok_and(|inbox| !inbox.is_empty())
}

fn has_away(shell: &Shell) -> bool {
    shell.core.try_borrow().is_ok_and(|core| core.is_any_away())
}

/// Leases end or are to be renewed.
fn has_ends(shell: &Shell, now: Now) -> bool {
    let ends = [next_expiry_ms(shell, now), next_renewal_ms(shell, now)];
    ends.into_iter().flatten().any(|ms| ms <= 0)
}

fn next_expiry_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.core.try_borrow().ok()?.next_expiry()?;
    Some(at.saturating_sub(now.wall_ms()))
}

fn next_renewal_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.core.try_borrow().ok()?.next_renewal()?;
    Some(at.saturating_sub(now.wall_ms()))
}

/// Whether watched keys are looked at now and then: Redis 7.0 does not tell when
/// one is overwritten.
fn checks_watched(shell: &Shell) -> bool {
    let watching = shell.core.try_borrow().is_ok_and(|core| core.is_watching());
    watching && !shell.watching_overwrites.get()
}

fn check_is_due(shell: &Shell, now: Now) -> bool {
    let since = now.mono_us.saturating_sub(shell.checked_us.get());
    checks_watched(shell) && since >= CHECK_MS.saturating_mul(1000)
}

/// Turns of those who wait by subscription are to be looked at.
fn has_turns(shell: &Shell, now: Now) -> bool {
    next_turn_ms(shell, now).is_some_and(|ms| ms <= 0)
}

fn next_turn_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.core.try_borrow().ok()?.next_turn()?;
    Some(ms_until(at, now))
}

/// Full ms until this monotonic us.
fn ms_until(at: i64, now: Now) -> i64 {
    let us = at.saturating_sub(now.mono_us).max(0);
    us.saturating_add(999).div_euclid(1000)
}

fn next_timeout_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.core.try_borrow().ok()?.next_timeout()?;
    Some(ms_until(at, now))
}

/// One turn: each step is written before the next one looks.
struct Tick {
    shell: &'static Shell,
    ctx: Ctx,
    ks: ServerKeyspace<'static>,
    now: Now,
    /// The effects so far: written, and not told of yet.
    told: Effects,
    occasion: Occasion,
}

impl Tick {
    /// Decides something, and hands on what has become free.
    fn decide(&mut self, act: impl FnOnce(&mut Decision<'_>)) {
        if let Ok(mut core) = self.shell.core.try_borrow_mut() {
            core.rules = config::rules();
            lock::decide(&mut core, &mut self.ks, self.now, &mut self.told, act);
        }
    }

    /// Takes something in, and hands nothing on yet.
    fn note(&mut self, act: impl FnOnce(&mut Decision<'_>)) {
        if let Ok(mut core) = self.shell.core.try_borrow_mut() {
            core.rules = config::rules();
            lock::note(&mut core, &mut self.ks, self.now, &mut self.told, act);
        }
    }

    /// What the core tells, without changing anything.
    fn ask<T: Default>(&self, ask: impl FnOnce(&Core) -> T) -> T {
        let core = self.shell.core.try_borrow();
        core.map_or_else(|_| T::default(), |core| ask(&core))
    }

    /// Reads the notes, and looks again at keys that were away for a while.
    fn read_notes(&mut self, with_those_away: bool) {
        let notes = match self.shell.inbox.try_borrow_mut() {
            Ok(mut inbox) => inbox.take(),
            Err(_) => return,
        };
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
        let end = self.shell.now().mono_us.saturating_add(SLICE_US);
        while piece(self) {
            self.now = self.shell.now();
            if self.now.mono_us >= end {
                return;
            }
        }
    }

    /// Looks at what was heard of keys and connections: the timer in slices, a job once.
    /// A command takes into account what was heard of its own keys when it looks at them;
    /// the rest is not its business, and its slot may be another one.
    fn review(&mut self) {
        if self.occasion == Occasion::Command {
            return timer::arm_now(self.shell, self.ctx);
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
            next.is_some_and(|at| at <= tick.now.mono_us)
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
        self.shell.checked_us.set(self.now.mono_us);
        let behind = self.shell.checked.take();
        let watched = self.ask(|core| core.watched(behind.as_ref(), CHECKED));
        self.shell.checked.replace(watched.last().cloned());
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
        let mut ours = false;
        match slots::whose(self.shell, self.ctx, key) {
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

    fn finish(mut self) {
        self.ks.close();
        effects::tell(self.shell, self.ctx, Given::default(), &mut self.told);
    }
}
