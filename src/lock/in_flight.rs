//! Grants under way.
//!
//! A grant is not done when it is decided. Its reply leaves the server a moment later,
//! and until then the client can be killed or unblocked by somebody else. So a grant is
//! remembered until the shell says that the reply is out ([`Core::confirm`]) or that it
//! never will be ([`Note::Lost`]), exactly one of them.
//!
//! [`Core::confirm`]: super::Core::confirm
//! [`Note::Lost`]: super::Note::Lost

use std::collections::HashMap;

use super::ask::Want;
use super::{ClientId, Key, Token, WaiterId};

/// A grant on its way to its client.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Each with the token of the hold there.
    pub keys: Vec<(Key, Token)>,
    pub want: Want,
}

#[derive(Clone, Debug, Default)]
pub struct InFlight {
    grants: HashMap<WaiterId, Grant>,
}

impl InFlight {
    pub fn insert(&mut self, id: WaiterId, grant: Grant) {
        self.grants.insert(id, grant);
    }

    pub fn remove(&mut self, id: WaiterId) -> Option<Grant> {
        self.grants.remove(&id)
    }

    /// What a connection was granted of a key, and never got, is over with it.
    pub fn forget_watched(&mut self, client: ClientId, key: &Key) {
        let its = |grant: &&mut Grant| grant.want.watch && grant.want.client == Some(client);
        for grant in self.grants.values_mut().filter(its) {
            grant.keys.retain(|(granted, _)| granted != key);
        }
    }

    /// Keys go by other names now.
    pub fn rename(&mut self, to: impl Fn(&Key) -> Key) {
        let grants = self.grants.values_mut();
        for (key, _) in grants.flat_map(|grant| &mut grant.keys) {
            *key = to(key);
        }
    }

    /// All of them, by their requests.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (WaiterId, &Grant)> {
        self.grants.iter().map(|(id, grant)| (*id, grant))
    }
}
