//! What the module is made of on the server's side: the owners of `state`, put together
//! at load. It decides nothing itself.

use super::state::{
    Alarm, Clients, CounterNames, Inbox, Listeners, Locks, Outbox, OwnWork, Pulse, Server,
    Situation, Stock, Subscriptions, Unpublished,
};
use super::sys::{Global, Run};
use crate::lock::Core;

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
    pub counter_names: CounterNames,
    pub outbox: Outbox,
    pub listeners: Listeners,
    pub locks: Locks,
    pub own_work: OwnWork,
    pub stock: Stock,
    pub unpublished: Unpublished,
}

impl Shell {
    /// A fresh state.
    pub fn new(server: Server, on_timer: Run) -> Self {
        Self {
            alarm: Alarm::new(server.wakeup, on_timer),
            server,
            situation: Situation::default(),
            pulse: Pulse::new(),
            subscriptions: Subscriptions::default(),
            inbox: Inbox::default(),
            clients: Clients::default(),
            counter_names: CounterNames::default(),
            outbox: Outbox::default(),
            listeners: Listeners::default(),
            locks: Locks::default(),
            own_work: OwnWork::default(),
            stock: Stock::default(),
            unpublished: Unpublished::default(),
        }
    }

    /// Whether an event of a key is news: not our own doing, and not history.
    pub fn listens(&self) -> bool {
        let situation = &self.situation;
        !self.own_work.writing.get() && !situation.loading.get() && situation.master.get()
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
