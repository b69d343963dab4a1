//! Which events of the server we are subscribed to.

use std::cell::Cell;

use crate::server::sys::{Ctx, LaterFn};

pub struct Subscriptions {
    /// Key events: from the first lock on.
    pub keys: Cell<bool>,
    /// Changes of hashes: from the first wait for a read/write lock on.
    pub hashes: Cell<bool>,
    /// Overwritten keys: while there is a watchdog hold.
    pub overwrites: Cell<bool>,
    /// Turns of the event loop: while anybody waits or a hold belongs to a connection.
    pub turns: Cell<bool>,
    /// Connections that close: while a hold or a queued waiter belongs to one, or a grant is
    /// on its way. Not for blocked waiters alone: the server calls us for the end of their
    /// waits anyway, and where very many close at once each event makes others wait longer.
    pub closes: Cell<bool>,
    subscribe_closes: LaterFn,
    /// Somebody has used WATCHDOG since the module was loaded.
    pub watchdog_used: Cell<bool>,
}

impl Subscriptions {
    /// None yet. `subscribe_closes` subscribes to connections that close.
    pub fn new(subscribe_closes: LaterFn) -> Self {
        Self {
            keys: Cell::default(),
            hashes: Cell::default(),
            overwrites: Cell::default(),
            turns: Cell::default(),
            closes: Cell::default(),
            subscribe_closes,
            watchdog_used: Cell::default(),
        }
    }

    /// Whether we get all events that a hold which belongs to a connection depends on.
    pub fn covers_holds(&self) -> bool {
        self.overwrites.get() && self.closes.get()
    }

    /// Subscribes to connections that close, unless it has.
    pub fn subscribe_closes(&self, ctx: Ctx<'_>) {
        if !self.closes.replace(true) {
            (self.subscribe_closes)(ctx);
        }
    }
}
