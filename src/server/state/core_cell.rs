//! The core, and how it is reached. While it decides nobody else reaches it: a callback
//! in the middle of a decision gets `None`.

use std::cell::{Cell, RefCell};

use crate::lock::{Core, Notices};

#[derive(Default)]
pub struct CoreCell {
    core: RefCell<Core>,
    /// A list of notices to use again.
    pub spare: Cell<Notices>,
}

impl CoreCell {
    /// What the core knows. `None`: it is deciding.
    pub fn ask<T>(&self, ask: impl FnOnce(&Core) -> T) -> Option<T> {
        self.core.try_borrow().ok().map(|core| ask(&core))
    }

    /// Changes what it knows, without a look at the keyspace. `None`: it is deciding.
    pub fn change<T>(&self, change: impl FnOnce(&mut Core) -> T) -> Option<T> {
        let core = self.core.try_borrow_mut();
        core.ok().map(|mut core| change(&mut core))
    }
}
