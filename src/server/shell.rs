//! What the module is made of on the server's side: the owners of `state`, put together
//! at load. It decides nothing itself.

use std::ffi::CStr;

use super::state::{
    Alarm, Clients, CounterNames, Inbox, Listeners, Locks, Outbox, OwnWork, Permission, Pulse,
    RecoveryScan, Server, Situation, Subscriptions, UnderWay, Unpublished,
};
use super::sys::{self, Ctx, Global, Run};
use crate::lock::{Core, Key};

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
    pub permission: Permission,
    pub recovery: RecoveryScan,
    pub unpublished: Unpublished,
}

impl Shell {
    /// A fresh state.
    pub fn new(server: Server, on_timer: Run, hear_closes: Run) -> Self {
        Self {
            alarm: Alarm::new(server.wakeup, on_timer),
            server,
            situation: Situation::default(),
            pulse: Pulse::new(),
            subscriptions: Subscriptions::new(hear_closes),
            inbox: Inbox::default(),
            clients: Clients::default(),
            counter_names: CounterNames::default(),
            outbox: Outbox::default(),
            listeners: Listeners::default(),
            locks: Locks::default(),
            own_work: OwnWork::default(),
            permission: Permission::default(),
            recovery: RecoveryScan::default(),
            unpublished: Unpublished::default(),
        }
    }

    /// Until the value is dropped, what happens to the key is our own doing, or this event of it
    /// alone.
    pub fn own(&self, key: &Key, event: Option<&'static CStr>) -> UnderWay<'_> {
        self.own_work.begin(key, event, self.situation.alone.get())
    }

    /// Whether an event of a key is news: not our own doing, and not history.
    pub fn is_news(&self, ctx: Ctx<'_>, event: &[u8], name: &[u8]) -> bool {
        self.listens() && !self.own_work.is_own(event, || ctx.db(), name)
    }

    /// Whether what happens to keys is no history.
    pub fn listens(&self) -> bool {
        !self.situation.loading.get() && self.situation.master.get()
    }

    /// Whether something is to be looked at: notes, or what the core has put off.
    pub fn has_notes(&self) -> bool {
        let due = self.locks.ask(Core::has_due).unwrap_or(false);
        due || !self.inbox.is_empty()
    }

    /// Whether anybody can hear a keyspace event: clients do only if the server is
    /// set to publish some, and modules only if another one is loaded. Emitting one
    /// that nobody hears costs an uncontended lock a tenth.
    pub fn is_heard(&self) -> bool {
        !self.situation.alone.get() || sys::publishes_events()
    }

    /// Whether what others do to any lock is to be heard: events of ours tell of it, or the
    /// server may evict it, which is to be counted.
    pub fn hears_all(&self) -> bool {
        self.situation.evicts.get() || self.is_heard()
    }

    /// Whether what others do to some key is to be heard.
    pub fn hears_any(&self) -> bool {
        let all = self.hears_all();
        self.locks.ask(|core| core.hears_any(all)).unwrap_or(false)
    }

    /// Whether what others do to a key of this name is, by what is known or a note that is
    /// not read yet.
    pub fn hears(&self, ctx: Ctx<'_>, name: &[u8]) -> bool {
        let all = self.hears_all();
        let hears = |core: &Core| core.may_hear(name, all) && core.hears(ctx.db(), name, all);
        let hears = self.locks.ask(hears).unwrap_or(false);
        hears || self.inbox.has_arrived(|| ctx.db(), name)
    }
}
