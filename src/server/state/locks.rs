//! The core, and how it is reached. While it decides nobody else reaches it: a callback
//! in the middle of a decision gets `None`.

use std::cell::{Cell, RefCell};

use crate::config;
use crate::lock::{Core, Notices, Now};

pub struct Locks {
    core: RefCell<Core>,
    /// A list of notices to use again.
    spare: Cell<Notices>,
}

impl Locks {
    pub fn new() -> Self {
        Self {
            core: RefCell::new(Core::new()),
            spare: Cell::default(),
        }
    }

    /// What the core knows. `None`: it is deciding.
    pub fn ask<T>(&self, ask: impl FnOnce(&Core) -> T) -> Option<T> {
        self.core.try_borrow().ok().map(|core| ask(&core))
    }

    /// Changes what it knows, without a look at the keyspace. `None`: it is deciding.
    pub fn change<T>(&self, change: impl FnOnce(&mut Core) -> T) -> Option<T> {
        let core = self.core.try_borrow_mut();
        core.ok().map(|mut core| change(&mut core))
    }

    /// Has it decide, at this time. `None`: it is deciding.
    pub fn decide<T>(
        &self,
        now: impl FnOnce(&Core) -> Now,
        run: impl FnOnce(&mut Core, Now) -> T,
    ) -> Option<T> {
        let mut core = self.core.try_borrow_mut().ok()?;
        core.rules = config::rules();
        let now = now(&core);
        Some(run(&mut core, now))
    }

    /// An empty list of notices.
    pub fn notices(&self) -> Notices {
        self.spare.take()
    }

    /// Takes it back.
    pub fn reuse(&self, mut notices: Notices) {
        notices.clear();
        self.spare.set(notices);
    }
}
