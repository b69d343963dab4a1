//! What callbacks saw and left for later: keys to look at again, grants that
//! never reached their client.

use std::collections::BTreeSet;

use crate::lock::{Key, Note};

#[derive(Debug, Default)]
pub struct Inbox {
    pub notes: Vec<Note>,
    /// The key that a RENAME or MOVE has taken away, until the event that says
    /// where it went; they come as a pair.
    pub leaving: Option<Key>,
    /// Keys with waiters whose slot is another node's for now.
    pub away: BTreeSet<Key>,
    /// Whether a RENAME or MOVE is among the notes.
    pub has_moves: bool,
}

impl Inbox {
    /// Takes out all notes, and the keys that were away if they are asked for.
    pub fn take(&mut self, with_those_away: bool) -> (Vec<Note>, BTreeSet<Key>) {
        self.has_moves = false;
        let away = if with_those_away {
            std::mem::take(&mut self.away)
        } else {
            BTreeSet::new()
        };
        (std::mem::take(&mut self.notes), away)
    }
}
