//! How this server stands, as far as its events have said: its role, a load, other modules,
//! replicas, records.

use std::cell::Cell;

#[derive(Default)]
pub struct Situation {
    /// A data set is loaded: events of its keys are history.
    pub loading: Cell<bool>,
    /// On a replica nothing comes of what happens to keys: once it is promoted, all of
    /// them are looked at.
    pub master: Cell<bool>,
    /// No other module is loaded that could get a key event.
    pub alone: Cell<bool>,
    /// The server may evict locks when memory is full.
    pub evicts: Cell<bool>,
    /// A replica may be attached, or on its way.
    pub replicas: Cell<bool>,
    /// Whether anybody keeps a record of writes, if that is known (`outbound::records`).
    pub records: Cell<Option<bool>>,
}
