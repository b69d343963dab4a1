//! Attends to what is due without a command of a client: notes that callbacks
//! left, leases that ended, waits whose time is over.

use super::blocking;
use super::effects;
use super::events;
use super::ffi::{Ctx, Given};
use super::gate;
use super::inbox::Note;
use super::keyspace::{Access, ServerKeyspace};
use super::shell::Shell;
use super::timer;
use super::version::Wakeup;
use crate::lock::{Cause, Core, Effects, Heard, Key, Now};

/// So many leases or waits are ended at once, before other clients have a turn.
const BATCH: usize = 500;

/// While the gate is shut and something is due, look again after so many ms.
const GATE_POLL_MS: i64 = 10;

/// A key whose slot is on its way to another node is looked at after so many ms: it
/// may come back.
const AWAY_POLL_MS: i64 = 100;

/// With nobody waiting for so long, client events are let go.
const IDLE_MS: i64 = 1000;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The module's timer: all that is due.
    Timer,
    /// After a command that changed keys of ours: the notes.
    Job,
    /// At the start of a command of ours: the notes, so that the command finds
    /// every lock as it would be had they been read at once.
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
    };
    let due = has_notes(shell) || has_away(shell) || has_expiries(shell, tick.now);
    if due && gate::is_open(ctx, occasion == Occasion::Command) {
        tick.read_notes(occasion == Occasion::Timer);
        if occasion == Occasion::Timer {
            tick.expire();
        }
    }
    if occasion == Occasion::Timer {
        tick.step(|core, _, now, out| core.time_out(now, BATCH, out));
    }
    tick.finish();
    if occasion == Occasion::Timer {
        if shell.server.wakeup == Wakeup::ByTimer {
            blocking::deliver(shell);
        }
        if is_idle(shell) {
            events::unwatch_clients(shell, ctx);
        }
    }
}

/// Arms the timer for whatever comes next, after a turn of it.
pub fn arm_for_next(shell: &Shell, ctx: Ctx) {
    let now = shell.now();
    // What is overdue right after a turn waits for the gate or the next batch.
    let overdue = || {
        if gate::is_open(ctx, true) {
            1
        } else {
            GATE_POLL_MS
        }
    };
    let lease = next_expiry_ms(shell, now).map(|ms| if ms > 0 { ms } else { overdue() });
    let wait = next_timeout_ms(shell, now);
    let notes = has_notes(shell).then(overdue);
    let away = has_away(shell).then_some(AWAY_POLL_MS);
    let idle = shell.watching_clients.get().then_some(IDLE_MS);
    if let Some(ms) = [lease, wait, notes, away, idle].into_iter().flatten().min() {
        timer::arm(shell, ctx, now, ms);
    }
}

/// Arms the timer after a command; costs little when it is armed early enough.
pub fn arm_after_command(shell: &Shell, ctx: Ctx) {
    let (expiry, timeout) = match shell.core.try_borrow() {
        Ok(core) => (core.next_expiry(), core.next_timeout()),
        Err(_) => return,
    };
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
}

fn has_notes(shell: &Shell) -> bool {
    let inbox = shell.inbox.try_borrow();
    inbox.is_ok_and(|inbox| !inbox.notes.is_empty())
}

fn has_away(shell: &Shell) -> bool {
    let inbox = shell.inbox.try_borrow();
    inbox.is_ok_and(|inbox| !inbox.away.is_empty())
}

fn has_expiries(shell: &Shell, now: Now) -> bool {
    next_expiry_ms(shell, now).is_some_and(|ms| ms <= 0)
}

fn next_expiry_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.core.try_borrow().ok()?.next_expiry()?;
    Some(at.saturating_sub(now.wall_ms()))
}

fn next_timeout_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.core.try_borrow().ok()?.next_timeout()?;
    let us = at.saturating_sub(now.mono_us).max(0);
    Some(us.saturating_add(999).div_euclid(1000))
}

fn is_idle(shell: &Shell) -> bool {
    let nobody_waits = shell.core.try_borrow().is_ok_and(|c| c.waiting() == 0);
    nobody_waits && shell.blocked.try_borrow().is_ok_and(|b| b.is_empty())
}

/// One turn: each step is written before the next one looks.
struct Tick {
    shell: &'static Shell,
    ctx: Ctx,
    ks: ServerKeyspace<'static>,
    now: Now,
    /// The effects so far: written, and not told of yet.
    told: Effects,
}

impl Tick {
    fn step(&mut self, act: impl FnOnce(&mut Core, &mut ServerKeyspace<'_>, Now, &mut Effects)) {
        let mut out = Effects::new();
        if let Ok(mut core) = self.shell.core.try_borrow_mut() {
            act(&mut core, &mut self.ks, self.now, &mut out);
        }
        effects::write(self.shell, self.ctx, &mut self.ks, Given::default(), &out);
        self.told.append(&mut out);
    }

    /// Reads the notes, and looks again at keys that were away for a while.
    ///
    /// A note is older than anything that is done here. So no lock is handed on
    /// before all of them are read: what they say of a key must not be held
    /// against an owner that has it only since.
    fn read_notes(&mut self, with_those_away: bool) {
        let (notes, away) = match self.shell.inbox.try_borrow_mut() {
            Ok(mut inbox) => inbox.take(with_those_away),
            Err(_) => return,
        };
        let mut heard = Heard::default();
        let mut lost = Vec::new();
        for key in away {
            heard.of(key, Cause::Unknown);
        }
        for note in notes {
            match note {
                Note::Changed(key, cause) => heard.of(key, cause),
                Note::Renamed(from, to) => {
                    heard.renamed(&from, &to);
                    self.step(|core, _, _, _| core.renamed(&from, &to));
                }
                Note::Swapped(one, other) => {
                    heard.swapped(one, other);
                    self.step(|core, _, _, _| core.swapped(one, other));
                    for db in [one, other] {
                        self.hear_of_all(&mut heard, Some(db), Cause::Unknown);
                    }
                }
                Note::Replaced(db, cause) => self.hear_of_all(&mut heard, db, cause),
                Note::Lost(waiter) => lost.push(waiter),
            }
        }
        for (key, cause) in heard.keys() {
            self.review(&key, cause);
        }
        for waiter in lost {
            self.step(|core, ks, now, out| core.take_back(ks, now, waiter, out));
        }
    }

    fn hear_of_all(&self, heard: &mut Heard, db: Option<i32>, cause: Cause) {
        if let Ok(core) = self.shell.core.try_borrow() {
            for key in core.keys(db) {
                heard.of(key, cause);
            }
        }
    }

    fn expire(&mut self) {
        let due = self.shell.core.try_borrow().map(|c| c.due(self.now, BATCH));
        for key in due.unwrap_or_default() {
            self.review(&key, Cause::Unknown);
        }
    }

    fn review(&mut self, key: &Key, cause: Cause) {
        // The question may expire the key, which must not be open then.
        self.ks.close();
        if gate::is_ours(self.shell, self.ctx, key) {
            self.step(|core, ks, now, out| core.review(ks, now, key, cause, out));
            return;
        }
        self.step(|core, _, _, _| core.forsake(key));
        let waited_for = self
            .shell
            .core
            .try_borrow()
            .is_ok_and(|c| c.knows(key.db, &key.name));
        if let (true, Ok(mut inbox)) = (waited_for, self.shell.inbox.try_borrow_mut()) {
            inbox.away.insert(key.clone());
        }
    }

    fn finish(mut self) {
        self.ks.close();
        effects::tell(self.shell, self.ctx, Given::default(), &mut self.told);
    }
}
