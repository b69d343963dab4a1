//! What callbacks saw and left for later: keys to look at again, grants that
//! never reached their client.

use std::collections::BTreeSet;

use crate::lock::{Bytes, Cause, Key, WaiterId};

/// One thing to attend to, in the order in which it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The key may have changed.
    Changed(Key, Cause),
    /// A lease key of this reader of the lock may have changed.
    Reader(Key, Bytes, Cause),
    /// The first key is the second one now.
    Renamed(Key, Key),
    /// Two databases were exchanged.
    Swapped(i32, i32),
    /// A database was emptied, or all were emptied or loaded anew.
    Replaced(Option<i32>, Cause),
    /// A connection is closed that has watchdog holds.
    Closed(u64),
    /// The reply of this grant will never reach its client.
    Lost(WaiterId),
}

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
    /// A job that will read the notes has been asked for.
    pub job_is_due: bool,
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
