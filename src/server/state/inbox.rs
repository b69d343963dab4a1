//! What callbacks saw and left for later: keys to look at again, connections that closed,
//! grants that never reached their client. Whoever acts on it takes all of it at once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::lock::{Cause, Key, Note};

/// Beyond so many notes of keys, all keys are to be looked at instead: notes may have
/// to wait for the gate, and are not to grow without bound meanwhile.
const MOST_NOTES: usize = 16_384;

#[derive(Default)]
pub struct Inbox {
    notes: RefCell<Notes>,
    /// The database that the last key left by MOVE.
    pub moved_from: Cell<i32>,
}

impl Inbox {
    pub fn is_empty(&self) -> bool {
        self.notes.borrow().list.is_empty()
    }

    pub fn push(&self, note: Note) {
        let notes = &mut *self.notes.borrow_mut();
        match (&note, notes.list.last_mut()) {
            (Note::Changed(key, cause), Some(Note::Changed(last, last_cause))) if key == last => {
                *last_cause = (*last_cause).max(*cause);
                return;
            }
            (
                Note::Reader(key, owner, cause),
                Some(Note::Reader(last_key, last_owner, last_cause)),
            ) if key == last_key && owner == last_owner => {
                *last_cause = (*last_cause).max(*cause);
                return;
            }
            _ => {}
        }
        if notes.list.len() >= MOST_NOTES && is_of_keys(&note) {
            // Connections and grants are as they were; there are no more of those than
            // clients.
            notes.list.retain(|note| !is_of_keys(note));
            notes.arrived.clear();
            notes.list.push(Note::Replaced(None, Cause::Unknown));
            return;
        }
        if let Note::Renamed(_, to) = &note {
            notes.arrived.insert(to.clone());
        }
        notes.list.push(note);
    }

    /// A key was taken away by a RENAME or MOVE, and is of interest if it is given.
    pub fn leaves(&self, key: Option<Key>) {
        self.notes.borrow_mut().leaving = key;
    }

    /// The key that the last RENAME or MOVE has taken away.
    pub fn take_leaving(&self) -> Option<Key> {
        self.notes.borrow_mut().leaving.take()
    }

    /// Whether a note says that a key that is known goes by this name.
    pub fn has_arrived(&self, db: impl FnOnce() -> i32, name: &[u8]) -> bool {
        let arrived = &self.notes.borrow().arrived;
        !arrived.is_empty() && arrived.contains(&Key::new(db(), name))
    }

    /// Whether a key may be of interest for what became of another one.
    pub fn has_moves(&self) -> bool {
        let notes = self.notes.borrow();
        notes.leaving.is_some() || !notes.arrived.is_empty()
    }

    /// A data set was loaded: that it was emptied before that is part of it.
    pub fn forget_flushes(&self) {
        let list = &mut self.notes.borrow_mut().list;
        list.retain(|note| !matches!(note, Note::Replaced(..)));
    }

    /// Takes out all notes.
    pub fn take(&self) -> Vec<Note> {
        let notes = &mut *self.notes.borrow_mut();
        notes.arrived.clear();
        std::mem::take(&mut notes.list)
    }
}

#[derive(Debug, Default)]
struct Notes {
    /// In the order in which things happened.
    list: Vec<Note>,
    /// Where keys went by a RENAME or MOVE that is among the notes.
    arrived: BTreeSet<Key>,
    /// The key that a RENAME or MOVE has taken away, until the event that says
    /// where it went; they come as a pair.
    leaving: Option<Key>,
}

/// Whether a note says something of keys.
fn is_of_keys(note: &Note) -> bool {
    !matches!(note, Note::Closed(_) | Note::Lost(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::ClientId;

    #[test]
    fn more_notes_than_are_kept_come_to_a_look_at_everything() {
        let inbox = Inbox::default();
        let key = |number: usize| Key::new(0, number.to_string().as_bytes());
        inbox.push(Note::Renamed(key(1), key(2)));
        let closed = Note::Closed(ClientId::new(7).unwrap());
        inbox.push(closed.clone());
        for number in 0..3 * MOST_NOTES {
            inbox.push(Note::Changed(key(number), Cause::Removed));
            assert!(inbox.notes.borrow().list.len() <= MOST_NOTES);
        }
        assert!(!inbox.has_arrived(|| 0, b"2"));
        let notes = inbox.take();
        assert_eq!(notes[0], closed);
        assert!(notes.contains(&Note::Replaced(None, Cause::Unknown)));
        // The last ones came after that.
        let last = Note::Changed(key(3 * MOST_NOTES - 1), Cause::Removed);
        assert_eq!(notes.last(), Some(&last));
    }
}
