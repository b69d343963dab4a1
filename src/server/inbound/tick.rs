//! Has the core do what is due without a command of a client: by a job after the command
//! that left a note, before a command of ours, or by the timer.

use crate::config;
use crate::lock::{self, Gate, Note, Now, Occasion};
use crate::server::outbound::replication::{By, Replication};
use crate::server::outbound::{answers, publish};
use crate::server::run::{attend, decide, gate, schedule, Asked};
use crate::server::shell::{Shell, SHELL};
use crate::server::state::{clock, Read, Wakeup};
use crate::server::sys::Ctx;

/// Leaves notes of what was seen, and sees to it that they are read: by the job right
/// after the command that caused them, where the server can do that, else by the timer.
pub(super) fn leave(
    shell: &Shell,
    ctx: Ctx<'_>,
    notes: impl IntoIterator<Item = Note>,
    read: Read,
) {
    notes.into_iter().for_each(|note| shell.inbox.push(note));
    let by_job = read == Read::AfterCommand && shell.server.jobs;
    if !(by_job && shell.alarm.add_job(ctx, on_job)) {
        shell.alarm.arm_now(ctx);
    }
}

fn on_job(ctx: Ctx<'_>) {
    SHELL.with(ctx, |shell| {
        shell.alarm.job.set(false);
        serve(shell, ctx, Occasion::Job);
        schedule::arm_for_next(shell, ctx);
    });
}

/// Does what is due. What the gate forbids stays due; the timer is armed by the caller.
pub(super) fn serve(shell: &Shell, ctx: Ctx<'_>, occasion: Occasion) {
    let by = match occasion {
        Occasion::Command => By::Command,
        Occasion::Timer | Occasion::Job => By::Ourselves,
    };
    let to = Replication { shell, ctx, by };
    let asked = Asked::without_command(to);
    let outside = Outside { to, occasion };
    let served = decide(&asked, true, |with| lock::run(with, &outside, occasion));
    if let Some(((), found)) = served {
        attend(to, found);
    }
    if occasion == Occasion::Timer && shell.server.wakeup == Wakeup::ByTimer {
        answers::deliver(shell);
    }
}

/// Wakes those who wait by subscription, if that was put off and somebody does by now.
pub(super) fn catch_up(shell: &Shell, ctx: Ctx<'_>) {
    let is_due = shell.unpublished.is_due();
    if is_due && gate::look(&shell.pulse, ctx, false) == Gate::Open {
        let to = Replication {
            shell,
            ctx,
            by: By::Ourselves,
        };
        attend(to, publish::catch_up(&to));
    }
}

/// The server, as the core asks it. The core is lent meanwhile: it is not asked here.
struct Outside<'a> {
    to: Replication<'a>,
    occasion: Occasion,
}

impl lock::Outside for Outside<'_> {
    fn now(&self) -> Now {
        clock::now()
    }

    fn gate(&self) -> Gate {
        let asked = self.occasion == Occasion::Command;
        gate::look(&self.to.shell.pulse, self.to.ctx, asked)
    }

    fn has_notes(&self) -> bool {
        !self.to.shell.inbox.is_empty()
    }

    fn take_notes(&self) -> Vec<Note> {
        self.to.shell.inbox.take()
    }

    fn misses_overwrites(&self) -> bool {
        !self.to.shell.subscriptions.overwrites.get()
    }

    fn closes_on_loss(&self) -> bool {
        config::closes_on_loss()
    }
}
