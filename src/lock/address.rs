//! Where a client of a session is told something: NOTIFY.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

use super::key::Bytes;
use super::types::ClientId;

/// A channel that a connection listens to: one for all its requests, as a rule.
#[derive(Debug)]
pub struct Listener {
    pub client: ClientId,
    pub channel: Bytes,
    /// It is to know of its holds also that somebody waits for them: WANTED. It is the same listener
    /// with that or without.
    pub wants_hints: bool,
}

impl Listener {
    fn place(&self) -> (ClientId, &Bytes) {
        (self.client, &self.channel)
    }
}

impl PartialEq for Listener {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Listener {}

impl PartialOrd for Listener {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Listener {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl Hash for Listener {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

/// A listener, and its own name for one request of its. How the wait ends, and that the
/// hold is lost, is published there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Shared, for there may be very many requests.
    pub listener: Rc<Listener>,
    /// No other wait or hold of the connection has it. Short, and not shared: a copy is
    /// smaller than what sharing needs.
    pub tag: Box<[u8]>,
}

impl Deref for Address {
    type Target = Listener;

    fn deref(&self) -> &Listener {
        &self.listener
    }
}

impl Address {
    /// The same words, be it another connection.
    pub fn reads_as(&self, other: &Self) -> bool {
        (&self.channel, &self.tag) == (&other.channel, &other.tag)
    }
}
