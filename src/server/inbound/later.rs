//! What we have asked the server to call later: the timer, and the job after a command.

use super::watching;
use crate::lock::Occasion;
use crate::server::outbound::closes;
use crate::server::run::{schedule, serve};
use crate::server::shell::SHELL;
use crate::server::state::Callbacks;
use crate::server::sys::Ctx;

pub const CALLBACKS: Callbacks = Callbacks { on_timer, on_job };

fn on_timer(ctx: Ctx<'_>) {
    SHELL.with(ctx, |shell| {
        let firing = shell.alarm.fire();
        serve(shell, ctx, Occasion::Timer);
        watching::relax(shell, ctx);
        closes::close_some(shell, ctx);
        drop(firing);
        schedule::arm_for_next(shell, ctx);
    });
}

fn on_job(ctx: Ctx<'_>) {
    SHELL.with(ctx, |shell| {
        shell.alarm.job.set(false);
        serve(shell, ctx, Occasion::Job);
        schedule::arm_for_next(shell, ctx);
    });
}
