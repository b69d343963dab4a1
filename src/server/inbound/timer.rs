//! The module's one timer fires.

use super::{recovery, tick, watching};
use crate::lock::Occasion;
use crate::server::outbound::closes;
use crate::server::run::schedule;
use crate::server::shell::SHELL;
use crate::server::sys::Ctx;

/// Does all that is due, and arms the timer for what comes next.
pub fn on_timer(ctx: Ctx<'_>) {
    SHELL.with(ctx, |shell| {
        let firing = shell.alarm.fire();
        tick::serve(shell, ctx, Occasion::Timer);
        while firing.may_go_on() && schedule::is_lease_due(shell, ctx) {
            tick::serve(shell, ctx, Occasion::Timer);
        }
        tick::catch_up(shell, ctx);
        recovery::go_on(shell, ctx);
        watching::relax(shell, ctx);
        closes::close_some(shell, ctx);
        firing.end(|| schedule::arm_for_next(shell, ctx));
    });
}
