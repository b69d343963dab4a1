//! What the server was asked to tell us.

use std::cell::Cell;

use crate::server::sys::{Ctx, Run};

pub struct Subscriptions {
    /// Key events: from the first lock on.
    pub keys: Cell<bool>,
    /// Changes of hashes: from the first wait for a read/write lock on.
    pub hashes: Cell<bool>,
    /// Overwritten keys: while there is a watchdog hold.
    pub overwrites: Cell<bool>,
    /// Turns of the event loop: while anybody waits or a hold belongs to a connection.
    pub turns: Cell<bool>,
    /// Connections that close: while a hold or a wait by QUEUE belongs to one, or a grant is
    /// on its way. Not for BLOCK alone: of the end of its wait the server tells by itself,
    /// and where very many close at once each event adds to what others wait.
    pub closes: Cell<bool>,
    hear_closes: Run,
    /// Somebody has used WATCHDOG since the module was loaded.
    pub watchdog_used: Cell<bool>,
}

impl Subscriptions {
    /// None yet. `hear_closes` asks the server to tell of connections that close.
    pub fn new(hear_closes: Run) -> Self {
        Self {
            keys: Cell::default(),
            hashes: Cell::default(),
            overwrites: Cell::default(),
            turns: Cell::default(),
            closes: Cell::default(),
            hear_closes,
            watchdog_used: Cell::default(),
        }
    }

    /// Whether all is heard that a hold which belongs to a connection depends on.
    pub fn hear_holds(&self) -> bool {
        self.overwrites.get() && self.closes.get()
    }

    /// Connections that close are heard of from now on.
    pub fn hear_closes(&self, ctx: Ctx<'_>) {
        if !self.closes.replace(true) {
            (self.hear_closes)(ctx);
        }
    }
}
