//! Grants under way.
//!
//! A grant is not done when it is decided. Its reply leaves the server a moment later,
//! and until then the client can be killed or unblocked by somebody else. So a grant is
//! remembered until the shell says that the reply is out ([`Core::confirm`]) or that it
//! never will be ([`Note::Lost`]), exactly one of them.
//!
//! [`Core::confirm`]: super::Core::confirm
//! [`Note::Lost`]: super::Note::Lost

use std::collections::BTreeMap;

use super::ask::Want;
#[cfg(test)]
use super::queue::Queues;
use super::{ClientId, Key, Mode, Token, WaiterId};

/// A grant on its way to its client.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Each with the token of the hold there.
    pub keys: Vec<(Key, Token)>,
    pub want: Want,
    /// Those that go by other names than they were granted by: no watchdog keeps them.
    moved: Vec<Key>,
}

impl Grant {
    pub fn new(keys: Vec<(Key, Token)>, want: Want) -> Self {
        Self {
            keys,
            want,
            moved: Vec::new(),
        }
    }

    fn is_watched_by(&self, client: ClientId, key: &Key) -> bool {
        let is_bound = self.want.watch && self.want.client == Some(client);
        is_bound && !self.moved.contains(key)
    }
}

#[derive(Clone, Debug, Default)]
pub struct InFlight {
    /// By the requests that were granted.
    pub grants: BTreeMap<WaiterId, Grant>,
}

impl InFlight {
    /// What a connection was granted of a key, and never got, is over with it.
    pub fn forget_watched(&mut self, client: ClientId, key: &Key) {
        self.forget(key, |grant| grant.is_watched_by(client, key));
    }

    /// A key is not to be taken back with grants like these.
    fn forget(&mut self, key: &Key, its: impl Fn(&Grant) -> bool) {
        for grant in self.grants.values_mut().filter(|grant| its(grant)) {
            grant.keys.retain(|(granted, _)| granted != key);
        }
    }

    /// The owner has been told of its hold in another way: it stays, whatever becomes of
    /// the reply to the grant.
    pub fn let_stand(&mut self, key: &Key, owner: &[u8], mode: Mode) {
        self.forget(key, |Grant { want, .. }| {
            *want.owner == *owner && want.mode == mode
        });
    }

    /// A connection has no hold in this mode on the key any more: what it takes there
    /// later is another one than it was granted.
    pub fn forget_released(
        &mut self,
        key: &Key,
        owner: &[u8],
        mode: Mode,
        client: Option<ClientId>,
    ) {
        self.forget(key, |Grant { want, .. }| {
            *want.owner == *owner && (want.mode, want.client) == (mode, client)
        });
    }

    /// Keys go by other names now.
    pub fn rename(&mut self, to: impl Fn(&Key) -> Key) {
        for grant in self.grants.values_mut() {
            for (key, _) in &mut grant.keys {
                let new = to(key);
                if *key != new {
                    grant.moved.push(new.clone());
                    *key = new;
                }
            }
        }
    }

    /// Asserts that who was granted what it asked for has left the queues, and that
    /// whoever watches can be closed.
    #[cfg(test)]
    pub fn check(&self, queues: &Queues) {
        for (id, grant) in &self.grants {
            assert!(queues.get(*id).is_none(), "{grant:?} waits still");
            assert!(
                !grant.want.watch || grant.want.client.is_some(),
                "{grant:?}"
            );
        }
    }
}
