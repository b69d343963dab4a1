//! What the module is made of on the server's side: the owners of `state`, put together
//! at load. It decides nothing itself.

use std::ffi::CStr;

use super::state::{
    Alarm, Clients, CoreCell, CounterNames, Inbox, Listeners, Outbox, OwnWork, Permission, Pulse,
    RecoveryScan, ServerProfile, Situation, Subscriptions, UnderWay, Unpublished,
};
use super::sys::{self, Ctx, Global, LaterFn};
use crate::lock::{Core, Key};

/// The module's state, for a callback; empty while it is not loaded.
pub static SHELL: Global<ServerShell> = Global::empty();

pub struct ServerShell {
    pub server: ServerProfile,
    pub situation: Situation,
    pub pulse: Pulse,
    pub alarm: Alarm,
    pub subscriptions: Subscriptions,
    pub inbox: Inbox,
    pub clients: Clients,
    pub counter_names: CounterNames,
    pub outbox: Outbox,
    pub listeners: Listeners,
    pub core: CoreCell,
    pub own_work: OwnWork,
    pub permission: Permission,
    pub recovery: RecoveryScan,
    pub unpublished: Unpublished,
}

impl ServerShell {
    /// A fresh state.
    pub fn new(server: ServerProfile, on_timer: LaterFn, subscribe_closes: LaterFn) -> Self {
        Self {
            alarm: Alarm::new(server.wakeup, on_timer),
            server,
            situation: Situation::default(),
            pulse: Pulse::new(),
            subscriptions: Subscriptions::new(subscribe_closes),
            inbox: Inbox::default(),
            clients: Clients::default(),
            counter_names: CounterNames::default(),
            outbox: Outbox::default(),
            listeners: Listeners::default(),
            core: CoreCell::default(),
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
        let due = self.core.ask(Core::has_due).unwrap_or(false);
        due || !self.inbox.is_empty()
    }

    /// Whether anybody can get a keyspace event: clients do only if the server is
    /// set to publish some, and modules only if another one is loaded. An event that nobody
    /// gets would make an uncontended lock a tenth dearer.
    pub fn emits_events(&self) -> bool {
        !self.situation.alone.get() || sys::publishes_events()
    }

    /// Whether what others do to any lock is to be observed: we emit events about it, or the
    /// server may evict it, which is counted.
    pub fn observes_all(&self) -> bool {
        self.situation.evicts.get() || self.emits_events()
    }

    /// Whether what others do to some key is to be observed.
    pub fn observes_any(&self) -> bool {
        let all = self.observes_all();
        self.core
            .ask(|core| core.observes_any(all))
            .unwrap_or(false)
    }

    /// Whether what others do to a key of this name is to be observed, by what is known or by
    /// a note that is still pending.
    pub fn observes(&self, ctx: Ctx<'_>, name: &[u8]) -> bool {
        let all = self.observes_all();
        let observes =
            |core: &Core| core.may_observe(name, all) && core.observes(ctx.db(), name, all);
        let observes = self.core.ask(observes).unwrap_or(false);
        observes || self.inbox.has_arrived(|| ctx.db(), name)
    }
}
