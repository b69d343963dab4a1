//! When there is something to do next, and the timer armed for it.

use super::gate;
use crate::lock::{Core, Gate, Now, WallMs, ROUND_MS};
use crate::server::shell::Shell;
use crate::server::sys::Ctx;

/// While the gate is shut and something is due, look again after so many ms.
const GATE_POLL_MS: i64 = 10;

/// A key whose slot is on its way to another node is looked at after so many ms: it
/// may come back.
const AWAY_POLL_MS: i64 = 100;

/// With nobody waiting for so long, client events are let go.
pub const IDLE_MS: i64 = 1000;

/// Arms the timer for whatever comes next, after a turn of it.
pub fn arm_for_next(shell: &Shell, ctx: Ctx<'_>) {
    let now = shell.clock.now();
    // What is overdue right after a turn waits for the gate or the next batch.
    let overdue = || match gate::look(&shell.pulse, ctx, false) {
        Gate::Open => 1,
        Gate::Waking | Gate::Shut => GATE_POLL_MS,
    };
    if let Some(ms) = next_ms(shell, now, overdue) {
        shell.alarm.arm(ctx, now, ms);
    }
}

/// Now and then: mends a timer that the wall clock has left behind, or that a fault has
/// kept from being armed.
pub fn mend(shell: &Shell, ctx: Ctx<'_>) {
    let now = shell.clock.now();
    if shell.alarm.is_armed() {
        shell.alarm.mend(ctx, now);
    } else if let Some(ms) = next_ms(shell, now, || 0) {
        shell.alarm.arm(ctx, now, ms);
    }
}

/// In how many ms the timer has something to do. `overdue`: when to look again at
/// what is due already.
fn next_ms(shell: &Shell, now: Now, overdue: impl Fn() -> i64) -> Option<i64> {
    let again = |ms: i64| if ms > 0 { ms } else { overdue() };
    let is = |ask: fn(&Core) -> bool| shell.locks.ask(ask).unwrap_or(false);
    let all = [
        ms_until(shell, now, Core::next_end).map(again),
        next_turn_ms(shell, now).map(again),
        next_timeout_ms(shell, now),
        shell.has_notes().then(&overdue),
        // Redis 7.0 does not tell when a key is overwritten.
        (is(Core::is_watching) && !shell.subscriptions.overwrites.get()).then_some(ROUND_MS),
        is(Core::is_any_away).then_some(AWAY_POLL_MS),
        shell.subscriptions.clients.get().then_some(IDLE_MS),
        shell.clients.any_closing().then_some(1),
    ];
    all.into_iter().flatten().min()
}

/// Arms the timer after a command; costs little when it is armed early enough. Whether
/// there are watchdog holds.
pub fn arm_after_command(shell: &Shell, ctx: Ctx<'_>) -> bool {
    let known = shell.locks.ask(|core| {
        let end = core.next_end().filter(|at| !shell.alarm.fires_by(*at));
        let waits = core.next_timeout().is_some() || core.next_turn().is_some();
        (end, waits, core.is_unsettled(), core.is_watching())
    });
    let Some((end, waits, unsettled, watching)) = known else {
        return false;
    };
    if unsettled {
        shell.wake_soon(ctx);
    }
    if end.is_some() || waits {
        let now = shell.clock.now();
        let end = end.map(|at| at.since(now.wall_ms()));
        let waits = [next_timeout_ms(shell, now), next_turn_ms(shell, now)];
        for ms in end.into_iter().chain(waits.into_iter().flatten()) {
            shell.alarm.arm(ctx, now, ms);
        }
    }
    watching
}

/// How many ms until this moment of the wall clock.
fn ms_until(shell: &Shell, now: Now, at: impl FnOnce(&Core) -> Option<WallMs>) -> Option<i64> {
    let at = shell.locks.ask(at).flatten()?;
    Some(at.since(now.wall_ms()))
}

fn next_turn_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.locks.ask(Core::next_turn).flatten()?;
    Some(at.ms_from(now.mono))
}

fn next_timeout_ms(shell: &Shell, now: Now) -> Option<i64> {
    let at = shell.locks.ask(Core::next_timeout).flatten()?;
    Some(at.ms_from(now.mono))
}
