//! How this server stands, as far as it has told us: its role, a load, other modules,
//! replicas, records.

use std::cell::Cell;

pub struct Situation {
    /// A data set is loaded: what its keys tell of is history.
    loading: Cell<bool>,
    /// On a replica nothing comes of what happens to keys: once it is promoted, all of
    /// them are looked at.
    master: Cell<bool>,
    /// No other module is loaded that could hear a key event.
    alone: Cell<bool>,
    /// A replica may be attached, or on its way.
    replicas: Cell<bool>,
    /// Whether anybody keeps a record of writes, if that is known (`outbound::records`).
    records: Cell<Option<bool>>,
}

impl Situation {
    pub fn new(master: bool, replicas: bool) -> Self {
        Self {
            loading: Cell::new(false),
            master: Cell::new(master),
            alone: Cell::new(false),
            replicas: Cell::new(replicas),
            records: Cell::new(None),
        }
    }

    pub fn set_loading(&self, loading: bool) {
        self.loading.set(loading);
        self.doubt_records();
    }

    pub fn is_loading(&self) -> bool {
        self.loading.get()
    }

    pub fn set_master(&self, master: bool) {
        self.master.set(master);
        self.doubt_records();
    }

    /// Whether what happens to keys is news, and matters.
    pub fn heeds_keys(&self) -> bool {
        !self.loading.get() && self.master.get()
    }

    pub fn set_alone(&self, alone: bool) {
        self.alone.set(alone);
    }

    pub fn is_alone(&self) -> bool {
        self.alone.get()
    }

    /// A replica came, or may be on its way.
    pub fn expect_replicas(&self) {
        self.replicas.set(true);
        self.doubt_records();
    }

    pub fn may_have_replicas(&self) -> bool {
        self.replicas.get()
    }

    /// Something happened that can change whether anybody keeps a record.
    pub fn doubt_records(&self) {
        self.records.set(None);
    }

    pub fn records(&self) -> Option<bool> {
        self.records.get()
    }

    pub fn know_records(&self, kept: bool) {
        self.records.set(Some(kept));
    }
}
