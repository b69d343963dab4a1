//! What the server was asked to tell us.

use std::cell::Cell;

pub struct Subscriptions {
    /// Key events, for good: from the first lock on.
    keys: Cell<bool>,
    /// Changes of hashes: from the first wait for a read/write lock on.
    hashes: Cell<bool>,
    /// Overwritten keys: while there is a watchdog hold.
    overwrites: Cell<bool>,
    /// Clients and turns of the event loop: while anybody waits or a hold belongs to a
    /// connection.
    clients: Cell<bool>,
    /// Somebody has used WATCHDOG since the module was loaded.
    watchdog_used: Cell<bool>,
}

impl Subscriptions {
    pub fn new() -> Self {
        Self {
            keys: Cell::new(false),
            hashes: Cell::new(false),
            overwrites: Cell::new(false),
            clients: Cell::new(false),
            watchdog_used: Cell::new(false),
        }
    }

    pub fn keys(&self) -> bool {
        self.keys.get()
    }

    pub fn set_keys(&self) {
        self.keys.set(true);
    }

    pub fn hashes(&self) -> bool {
        self.hashes.get()
    }

    pub fn set_hashes(&self) {
        self.hashes.set(true);
    }

    pub fn overwrites(&self) -> bool {
        self.overwrites.get()
    }

    /// What it was before.
    pub fn set_overwrites(&self, told: bool) -> bool {
        self.overwrites.replace(told)
    }

    pub fn clients(&self) -> bool {
        self.clients.get()
    }

    /// What it was before.
    pub fn set_clients(&self, told: bool) -> bool {
        self.clients.replace(told)
    }

    pub fn watchdog_used(&self) -> bool {
        self.watchdog_used.get()
    }

    /// Whether it is the first use.
    pub fn use_watchdog(&self) -> bool {
        !self.watchdog_used.replace(true)
    }
}
