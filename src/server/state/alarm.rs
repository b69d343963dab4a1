//! What wakes us later: the one timer of the module, and the event loop itself. What is to
//! be done then is not this file's matter: it is given functions.
//!
//! The timer is armed for the earliest of leases, BLOCK time-outs and whatever was left
//! for later, and never stopped early; when it fires with nothing due it is armed anew.

use std::cell::Cell;

use super::clock;
use super::server::Wakeup;
use crate::lock::{MonoUs, Now, WallMs};
use crate::server::sys::{self, Ctx, LaterFn, Timer};

/// Nothing is waited for longer than this, in ms.
const LONGEST_MS: i64 = 1000;

/// A clock that is slewed runs apart from the other by less than this in the longest
/// wait, ms. One that is stepped by no more makes nothing late that matters.
const SLEW_MS: i64 = 3;

/// It goes on for no longer than this however late it came, us: with the turn that it begins last,
/// and with one stop of the server behind it, no other client waits for more than 10 ms.
const LONGEST_US: i64 = 7000;

pub struct Alarm {
    timer: Cell<Option<Timer>>,
    /// What it is armed for.
    armed: Cell<Option<Armed>>,
    /// Its callback runs.
    firing: Cell<bool>,
    /// It runs too early: the wall clock was set back since the server began to fire timers.
    early: Cell<bool>,
    /// The event loop is known to come to its end of a turn before it sleeps.
    pub awake: Cell<bool>,
    wakeup: Wakeup,
    on_timer: LaterFn,
}

/// A moment by both clocks.
#[derive(Clone, Copy)]
struct Armed {
    mono: MonoUs,
    wall: WallMs,
}

impl Armed {
    /// The wall clock was stepped since. The server keeps its timers by it.
    fn is_off(&self, now: Now) -> bool {
        let by_mono = self.mono.ms_since(now.mono);
        let by_wall = self.wall.since(now.wall_ms());
        by_wall.saturating_sub(by_mono).abs() > SLEW_MS
    }
}

impl Alarm {
    pub fn new(wakeup: Wakeup, on_timer: LaterFn) -> Self {
        Self {
            timer: Cell::new(None),
            armed: Cell::new(None),
            firing: Cell::new(false),
            early: Cell::new(false),
            awake: Cell::new(false),
            wakeup,
            on_timer,
        }
    }

    /// Sees to it that the timer fires in at most `ms` from now.
    ///
    /// Not while it fires too early. The server fires all that is due by the moment in which
    /// it began, so what is armed by a clock that was set back since would fire again and
    /// again, and nobody be served until the clock is there once more. [`Alarm::mend`] arms it.
    pub fn arm(&self, ctx: Ctx<'_>, now: Now, ms: i64) {
        if self.early.get() {
            return;
        }
        let ms = ms.clamp(0, LONGEST_MS);
        let at = now.until(ms);
        if self.armed.get().is_some_and(|armed| armed.mono <= at) {
            return;
        }
        self.stop(ctx);
        let timer = Timer::start(ctx, ms, self.on_timer);
        self.armed.set(timer.is_some().then_some(Armed {
            mono: at,
            wall: now.deadline(ms),
        }));
        self.timer.set(timer);
        self.keep_awake();
    }

    fn stop(&self, ctx: Ctx<'_>) {
        self.armed.set(None);
        if let Some(timer) = self.timer.take() {
            timer.stop(ctx);
        }
    }

    /// Sees to it that the timer fires as soon as the event loop comes round.
    pub fn arm_now(&self, ctx: Ctx<'_>) {
        if !self.firing.get() {
            self.arm(ctx, clock::now(), 0);
            sys::keep_loop_awake();
        }
    }

    /// A timer that the wall clock has left behind, or hurried on, fires at once, and is
    /// armed anew for what comes next.
    pub fn mend(&self, ctx: Ctx<'_>, now: Now) {
        if self.armed.get().is_some_and(|armed| armed.is_off(now)) {
            self.stop(ctx);
            self.arm(ctx, now, 0);
        }
    }

    pub fn is_armed(&self) -> bool {
        self.armed.get().is_some()
    }

    /// Whether the timer fires no later than this, by what the wall clock was when it was
    /// armed. Says so without reading a clock.
    pub fn fires_by(&self, wall: WallMs) -> bool {
        self.armed.get().is_some_and(|armed| armed.wall <= wall)
    }

    /// Whether it should have fired by now, so that something may be due.
    pub fn is_overdue(&self, wall: WallMs) -> bool {
        self.armed.get().is_some_and(|armed| armed.wall < wall)
    }

    /// The timer fires, until the value is dropped.
    pub fn fire(&self) -> Firing<'_> {
        let armed = self.armed.take();
        self.timer.set(None);
        self.firing.set(true);
        let mut firing = Firing {
            alarm: self,
            until: MonoUs(0),
        };
        // Looked at last, for a look at a clock can fail.
        let now = clock::now();
        let early = armed.is_some_and(|armed| armed.wall.since(now.wall_ms()) > SLEW_MS);
        self.early.set(early);
        let late_us = armed.map_or(0, |armed| now.mono.since(armed.mono));
        firing.until = now.mono.plus_us(late_us.clamp(0, LONGEST_US));
        firing
    }

    /// Redis 7.0 computes how long it sleeps, then calls us, and only then runs what stood
    /// behind a request that was just unblocked. So what comes up there (a timer, a grant)
    /// would wait until something else wakes the loop. Unless this turn of it is known not
    /// to be that far.
    pub fn keep_awake(&self) {
        if self.wakeup == Wakeup::BeforeSleep && !self.awake.get() {
            sys::keep_loop_awake();
        }
    }

    /// What of ours the server has still to call.
    pub fn awaits(&self) -> Option<&'static str> {
        let reasons = [
            (
                sys::loop_is_kept_awake(),
                "the event loop is yet to come to it",
            ),
            (self.is_armed(), "its timer is armed"),
        ];
        reasons.into_iter().find_map(|(is, why)| is.then_some(why))
    }
}

/// The timer's callback runs: it is armed at the end of it, and not before.
pub struct Firing<'a> {
    alarm: &'a Alarm,
    until: MonoUs,
}

impl Firing<'_> {
    /// Whether it may go on: for as long as it came late, up to a bound. So where turns of the event
    /// loop are long it has about as much time in each as all clients together; what begins in
    /// longer ones is ended by the commands themselves.
    pub fn may_go_on(&self) -> bool {
        clock::now().mono < self.until
    }

    /// All is done: the timer is armed for what comes next.
    pub fn end(self, arm: impl FnOnce()) {
        self.alarm.firing.set(false);
        arm();
    }
}

impl Drop for Firing<'_> {
    fn drop(&mut self) {
        self.alarm.firing.set(false);
        self.alarm.early.set(false);
    }
}
