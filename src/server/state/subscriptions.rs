//! What the server was asked to tell us.

use std::cell::Cell;

#[derive(Default)]
pub struct Subscriptions {
    /// Key events: from the first lock on.
    pub keys: Cell<bool>,
    /// Changes of hashes: from the first wait for a read/write lock on.
    pub hashes: Cell<bool>,
    /// Overwritten keys: while there is a watchdog hold.
    pub overwrites: Cell<bool>,
    /// Clients and turns of the event loop: while anybody waits or a hold belongs to a
    /// connection.
    pub clients: Cell<bool>,
    /// Somebody has used WATCHDOG since the module was loaded.
    pub watchdog_used: Cell<bool>,
}
