//! Connections that were seen to listen to a channel since the last beat of the server.
//!
//! To look costs as much as a whole request, and a session makes very many of them on one
//! channel. It is for the error's sake alone: whether a grant's message reaches its client is looked at
//! anew when it is due.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::lock::ClientId;

/// More of them within one beat are looked at each time.
const MOST: usize = 4096;

#[derive(Default)]
pub struct Listeners {
    seen: RefCell<HashMap<ClientId, Box<[u8]>>>,
}

impl Listeners {
    pub fn has(&self, client: ClientId, channel: &[u8]) -> bool {
        let seen = self.seen.borrow();
        seen.get(&client).is_some_and(|known| **known == *channel)
    }

    pub fn add(&self, client: ClientId, channel: &[u8]) {
        let mut seen = self.seen.borrow_mut();
        if seen.len() < MOST {
            seen.insert(client, channel.into());
        }
    }

    /// A beat of the server: they may have unsubscribed since, or lost the permission.
    pub fn forget(&self) {
        self.seen.take();
    }
}
