//! When there is something to do next, and the timer armed for it.

use super::gate;
use crate::lock::{Core, Due, Gate, Now, When};
use crate::server::shell::ServerShell;
use crate::server::state::clock;
use crate::server::sys::Ctx;

/// While the gate is shut and something is due, look again after so many ms.
const GATE_POLL_MS: i64 = 10;

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
/// kept from being armed. It is armed for those who may be silent or are wanted, too.
pub fn mend(shell: &ServerShell, ctx: Ctx<'_>) {
    let now = clock::now();
    if shell.alarm.is_armed() {
        shell.alarm.mend(ctx, now);
        let next = |core: &Core| {
            let by_clock = Due::ORDER.into_iter().filter(|due| is_by_clock(*due));
            by_clock
                .filter_map(|due| due.next(core))
                .map(|when| ms_until(when, now))
                .min()
        };
        if let Some(ms) = shell.core.ask(next).flatten() {
            shell.alarm.arm(ctx, now, ms);
        }
    } else if let Some(ms) = next_ms(shell, now, || 0) {
        shell.alarm.arm(ctx, now, ms);
    }
}

/// In how many ms the timer has something to do. `overdue`: when to look again at
/// what is due already, and may have to wait for the gate.
fn next_ms(shell: &ServerShell, now: Now, overdue: impl Fn() -> i64) -> Option<i64> {
    let again = |ms: i64| if ms > 0 { ms } else { overdue() };
    let classes = shell
        .core
        .ask(|core| Due::ORDER.map(|due| (due, due.next(core))));
    // Redis 7.0 has no event for a key that is overwritten.
    let is_meant = |due| due != Due::Rounds || !shell.subscriptions.overwrites.get();
    let of_core = classes.into_iter().flatten().filter_map(|(due, next)| {
        let ms = ms_until(next.filter(|_| is_meant(due))?, now);
        Some(if due.needs_gate() {
            again(ms)
        } else {
            ms.max(1)
        })
    });
    let others = [
        shell.has_notes().then(&overdue),
        shell.subscriptions.turns.get().then_some(IDLE_MS),
        (shell.clients.any_closing() || shell.outbox.has_lines()).then_some(1),
        shell.recovery.next_ms().map(again),
    ];
    of_core.chain(others.into_iter().flatten()).min()
}

/// It is looked at by the clock, whatever commands come.
fn is_by_clock(due: Due) -> bool {
    matches!(due, Due::Silence | Due::Hints)
}

fn ms_until(when: When, now: Now) -> i64 {
    match when {
        When::Now => 0,
        When::At(at) => at.ms_from(now.mono),
        When::AtWall(at) => at.since(now.wall_ms()),
        When::Within(ms) => ms,
    }
}

/// Arms the timer after a command; costs little when it is armed early enough. Whether
/// there are watchdog holds.
pub fn arm_after_command(shell: &ServerShell, ctx: Ctx<'_>) -> bool {
    let known = shell.core.ask(|core| {
        let is_news = |when: &When| match when {
            When::Now | When::At(_) => true,
            When::AtWall(at) => !shell.alarm.fires_by(*at),
            When::Within(_) => false,
        };
        // `mend` begins with those that go by the clock.
        let by_command = |due: Due| (!is_by_clock(due)).then(|| due.next(core)).flatten();
        let next = Due::ORDER.map(|due| by_command(due).filter(is_news));
        (next, core.is_watching())
    });
    let Some((next, watching)) = known else {
        return false;
    };
    if next.contains(&Some(When::Now)) {
        shell.alarm.arm_now(ctx);
    }
    let later = next.into_iter().flatten();
    let mut later = later.filter(|when| *when != When::Now).peekable();
    if later.peek().is_some() {
        let now = clock::now();
        later.for_each(|when| shell.alarm.arm(ctx, now, ms_until(when, now)));
    }
    watching
}
