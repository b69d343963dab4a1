//! What the module is made of on the server's side: the owners of `state`, put together
//! at load. It decides nothing itself.

use super::state::{
    Alarm, Callbacks, Clients, Inbox, Locks, OwnWork, Pulse, Read, Server, Situation, Subscriptions,
};
use super::sys::{Ctx, Global};
use crate::lock::{Core, Note};

/// The module's state, for a callback; empty while it is not loaded.
pub static SHELL: Global<Shell> = Global::empty();

pub struct Shell {
    pub server: Server,
    pub situation: Situation,
    pub pulse: Pulse,
    pub alarm: Alarm,
    pub subscriptions: Subscriptions,
    pub inbox: Inbox,
    pub clients: Clients,
    pub locks: Locks,
    pub own_work: OwnWork,
}

impl Shell {
    /// A fresh state.
    pub fn new(server: Server, situation: Situation, callbacks: Callbacks) -> Self {
        Self {
            alarm: Alarm::new(server.wakeup, callbacks),
            server,
            situation,
            pulse: Pulse::new(),
            subscriptions: Subscriptions::default(),
            inbox: Inbox::default(),
            clients: Clients::default(),
            locks: Locks::new(),
            own_work: OwnWork::default(),
        }
    }

    /// Whether an event of a key is news: not our own doing, and not history.
    pub fn listens(&self) -> bool {
        let situation = &self.situation;
        !self.own_work.writing.get() && !situation.loading.get() && situation.master.get()
    }

    /// Leaves notes of what was seen, and sees to it that they are read: right after the
    /// command that caused them, where the server can do that, else by the timer.
    pub fn leave(&self, ctx: Ctx<'_>, notes: impl IntoIterator<Item = Note>, read: Read) {
        notes.into_iter().for_each(|note| self.inbox.push(note));
        let by_job = read == Read::AfterCommand && self.server.jobs;
        if !(by_job && self.alarm.add_job(ctx)) {
            self.alarm.arm_now(ctx);
        }
    }

    /// Whether something is to be looked at: notes, or what the core has put off.
    pub fn has_notes(&self) -> bool {
        let due = self.locks.ask(Core::has_due).unwrap_or(false);
        due || !self.inbox.is_empty()
    }

    /// Whether a key of this name is known, or a note that is not read yet says so.
    pub fn knows(&self, db: i32, name: &[u8]) -> bool {
        let known = self.locks.ask(|core| core.knows(db, name)).unwrap_or(false);
        known || self.inbox.has_arrived(db, name)
    }
}
