//! When there is something to do next, and the timer armed for it.

use super::gate;
use crate::lock::{Core, Gate, Now, ROUND_MS};
use crate::server::shell::ServerShell;
use crate::server::state::clock;
use crate::server::sys::Ctx;

/// While the gate is shut and something is due, look again after so many ms.
const GATE_POLL_MS: i64 = 10;

/// A key whose slot migrates to another node is looked at after so many ms: it
/// may come back.
const AWAY_POLL_MS: i64 = 100;

/// With nobody waiting for so long, events of the loop are let go.
pub const IDLE_MS: i64 = 1000;

/// Arms the timer for whatever comes next, after a turn of it.
pub fn arm_for_next(shell: &ServerShell, ctx: Ctx<'_>) {
    let now = clock::now();
    // What is overdue right after a turn waits for the gate or the next batch.
    let overdue = || match gate::look(&shell.pulse, ctx, false) {
        Gate::Open => 1,
        Gate::Waking | Gate::Shut => GATE_POLL_MS,
    };
    if let Some(ms) = next_ms(shell, now, overdue) {
        shell.alarm.arm(ctx, now, ms);
    }
}

/// Whether a lease is to be ended or renewed now, and may be.
pub fn is_lease_due(shell: &ServerShell, ctx: Ctx<'_>) -> bool {
    let next = shell.core.ask(Core::next_end).flatten();
    let is_due = next.is_some_and(|at| at <= clock::now_by_wall().wall_ms());
    is_due && gate::look(&shell.pulse, ctx, false) == Gate::Open
}

/// Now and then: mends a timer that the wall clock has left behind, or that a fault has
/// kept from being armed.
pub fn mend(shell: &ServerShell, ctx: Ctx<'_>) {
    let now = clock::now();
    if shell.alarm.is_armed() {
        shell.alarm.mend(ctx, now);
    } else if let Some(ms) = next_ms(shell, now, || 0) {
        shell.alarm.arm(ctx, now, ms);
    }
}

/// In how many ms the timer has something to do. `overdue`: when to look again at
/// what is due already.
fn next_ms(shell: &ServerShell, now: Now, overdue: impl Fn() -> i64) -> Option<i64> {
    let again = |ms: i64| if ms > 0 { ms } else { overdue() };
    let known = shell.core.ask(|core| {
        let moments = (core.next_end(), core.next_over());
        let again = [core.next_turn(), core.next_inquiry()];
        let half_done = core.any_half_done();
        let still = (core.is_any_away(), core.any_to_let_go(), half_done);
        (moments, again, core.is_watching(), still)
    });
    let ((end, timeout), [turn, inquiry], watching, (away, let_go, half_done)) =
        known.unwrap_or_default();
    let all = [
        end.map(|at| again(at.since(now.wall_ms()))),
        turn.map(|at| again(at.ms_from(now.mono))),
        inquiry.map(|at| again(at.ms_from(now.mono))),
        timeout.map(|at| at.ms_from(now.mono)),
        shell.has_notes().then(&overdue),
        // Redis 7.0 has no event for a key that is overwritten.
        (watching && !shell.subscriptions.overwrites.get()).then_some(ROUND_MS),
        away.then_some(AWAY_POLL_MS),
        shell.subscriptions.turns.get().then_some(IDLE_MS),
        (shell.clients.any_closing() || shell.outbox.has_lines()).then_some(1),
        let_go.then_some(1),
        half_done.then(&overdue),
        shell.recovery.next_ms().map(again),
    ];
    all.into_iter().flatten().min()
}

/// Arms the timer after a command; costs little when it is armed early enough. Whether
/// there are watchdog holds.
pub fn arm_after_command(shell: &ServerShell, ctx: Ctx<'_>) -> bool {
    let known = shell.core.ask(|core| {
        let end = core.next_end().filter(|at| !shell.alarm.fires_by(*at));
        let waits = [core.next_over(), core.next_turn(), core.next_inquiry()];
        let due = core.has_due() || core.any_half_done() || core.any_to_let_go();
        (end, waits, due, core.is_watching())
    });
    let Some((end, waits, due, watching)) = known else {
        return false;
    };
    if due {
        shell.alarm.arm_now(ctx);
    }
    if end.is_some() || waits != [None; 3] {
        let now = clock::now();
        let end = end.map(|at| at.since(now.wall_ms()));
        let waits = waits.into_iter().flatten();
        for ms in end.into_iter().chain(waits.map(|at| at.ms_from(now.mono))) {
            shell.alarm.arm(ctx, now, ms);
        }
    }
    watching
}
