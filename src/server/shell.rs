//! What the module is made of on the server's side: the owners of `state`, put together
//! at load. It decides nothing itself.

use super::state::{
    Alarm, Clients, Clock, Inbox, Locks, OwnWork, Pulse, Server, Situation, Subscriptions,
};
use super::sys::{Ctx, Global, MainThread, Run};
use crate::lock::{Core, Note};

pub struct Shell {
    pub server: Server,
    pub situation: Situation,
    pub pulse: Pulse,
    pub clock: Clock,
    pub alarm: Alarm,
    pub subscriptions: Subscriptions,
    pub inbox: Inbox,
    pub clients: Clients,
    pub locks: Locks,
    pub own_work: OwnWork,
}

/// What is called later, and by whom.
pub struct Callbacks {
    pub on_timer: Run,
    pub on_job: Run,
}

static SHELL: Global<Shell> = Global::empty();

/// The module's state, for a callback; `None`: it is not loaded.
pub fn with<'a, T>(here: impl Into<MainThread<'a>>, using: impl FnOnce(&Shell) -> T) -> Option<T> {
    SHELL.with(here, using)
}

/// Sets up a fresh state at load. `false`: there is one.
pub fn install(ctx: Ctx<'_>, server: Server, situation: Situation, callbacks: &Callbacks) -> bool {
    let shell = Shell {
        alarm: Alarm::new(server.wakeup, callbacks.on_timer, callbacks.on_job),
        server,
        situation,
        pulse: Pulse::new(),
        clock: Clock::new(),
        subscriptions: Subscriptions::default(),
        inbox: Inbox::default(),
        clients: Clients::default(),
        locks: Locks::new(),
        own_work: OwnWork::default(),
    };
    SHELL.install(ctx, shell)
}

/// Gives the state back at unload. `false`: it is in use.
pub fn uninstall(ctx: Ctx<'_>) -> bool {
    SHELL.remove(ctx)
}

impl Shell {
    /// Whether an event of a key is news: not our own doing, and not history.
    pub fn listens(&self) -> bool {
        let situation = &self.situation;
        !self.own_work.writing.get() && !situation.loading.get() && situation.master.get()
    }

    /// Has the timer fire as soon as the event loop comes round.
    pub fn wake_soon(&self, ctx: Ctx<'_>) {
        self.alarm.arm_now(ctx, &self.clock);
    }

    /// Whether something is to be looked at: notes, or what the core has put off.
    pub fn has_notes(&self) -> bool {
        let unsettled = self.locks.ask(Core::is_unsettled).unwrap_or(false);
        unsettled || !self.inbox.is_empty()
    }

    /// Whether a key of this name is known, or a note that is not read yet says so.
    pub fn knows(&self, db: i32, name: &[u8]) -> bool {
        let known = self.locks.ask(|core| core.knows(db, name)).unwrap_or(false);
        known || self.inbox.has_arrived(db, name)
    }

    /// Leaves a note to be read by the timer.
    pub fn note(&self, ctx: Ctx<'_>, note: Note) {
        self.inbox.push(note);
        self.wake_soon(ctx);
    }
}
