//! Has the core do what is due without a command of a client: by the timer, or before a
//! command of ours.

use crate::config;
use crate::lock::{self, Decider, Gate, Note, Now, Occasion};
use crate::server::outbound::replication::{By, Replication};
use crate::server::outbound::{answers, publish};
use crate::server::run::{attend, decide, gate, Caller};
use crate::server::shell::ServerShell;
use crate::server::state::{clock, Wakeup};
use crate::server::sys::{Ctx, MachineUs};

/// Leaves notes of what was seen. The timer reads them as soon as the event loop comes round.
/// Not earlier, in a job of the server's: it runs jobs while it goes through keys or fields that
/// have run out, and one that writes a key which it is not done with ends it. Nor would a replica
/// that is cut off in between have a lock without a lease, where a command replicates
/// its effects one by one.
pub(super) fn leave(shell: &ServerShell, ctx: Ctx<'_>, notes: impl IntoIterator<Item = Note>) {
    notes.into_iter().for_each(|note| shell.inbox.push(note));
    shell.alarm.arm_now(ctx);
}

/// Does what is due. What the gate forbids stays due; the timer is armed by the caller.
pub(super) fn serve(shell: &ServerShell, ctx: Ctx<'_>, occasion: Occasion) {
    let by = match occasion {
        Occasion::Command => By::Command,
        Occasion::Timer => By::Ourselves,
    };
    let to = Replication { shell, ctx, by };
    let caller = Caller::without_command(to);
    let outside = ServerOutside { to, occasion };
    let served = decide(&caller, true, |with| lock::run(with, &outside, occasion));
    if let Some(((), found)) = served {
        attend(to, found);
    }
    if occasion == Occasion::Timer && shell.server.wakeup == Wakeup::ByTimer {
        answers::deliver(shell);
    }
}

/// Ends a few leases that are due at the start of a command that writes, should the timer be
/// late. Not in somebody's transaction or script, and in a cluster not those of other slots than
/// the command's.
pub(super) fn end_few(shell: &ServerShell, ctx: Ctx<'_>, with: &mut Decider<'_>) {
    let is_late = || shell.alarm.is_overdue(with.now.wall_ms());
    let may = || !shell.server.cluster && ctx.stands_alone();
    if is_late() && may() && shell.pulse.is_up_to_date(MachineUs::now()) {
        lock::end_few(with);
    }
}

/// Wakes those who wait by subscription, if that was put off and somebody does by now.
pub(super) fn catch_up(shell: &ServerShell, ctx: Ctx<'_>) {
    let is_due = shell.unpublished.is_due();
    if is_due && gate::look(&shell.pulse, ctx, false) == Gate::Open {
        let to = Replication {
            shell,
            ctx,
            by: By::Ourselves,
        };
        publish::catch_up(&to);
    }
}

/// The server, as the core asks it. The core is lent meanwhile: it is not asked here.
struct ServerOutside<'a> {
    to: Replication<'a>,
    occasion: Occasion,
}

impl lock::Outside for ServerOutside<'_> {
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
