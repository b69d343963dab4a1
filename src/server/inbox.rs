//! What callbacks saw and left for later: keys to look at again, grants that
//! never reached their client.

use std::collections::HashSet;

use crate::lock::{Cause, Key, Note};

/// Beyond so many notes of keys, all keys are to be looked at instead: notes may have
/// to wait for the gate, and are not to grow without bound meanwhile.
const MOST_NOTES: usize = 16_384;

#[derive(Debug, Default)]
pub struct Inbox {
    /// In the order in which things happened.
    notes: Vec<Note>,
    /// Where keys went by a RENAME or MOVE that is among the notes.
    arrived: HashSet<Key>,
    /// The key that a RENAME or MOVE has taken away, until the event that says
    /// where it went; they come as a pair.
    pub leaving: Option<Key>,
}

impl Inbox {
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    pub fn push(&mut self, note: Note) {
        match (&note, self.notes.last_mut()) {
            (Note::Changed(key, cause), Some(Note::Changed(last, heard))) if key == last => {
                *heard = (*heard).max(*cause);
                return;
            }
            (Note::Reader(key, owner, cause), Some(Note::Reader(last_key, last_owner, heard)))
                if key == last_key && owner == last_owner =>
            {
                *heard = (*heard).max(*cause);
                return;
            }
            _ => {}
        }
        if self.notes.len() >= MOST_NOTES && is_of_keys(&note) {
            self.forget_keys();
            self.notes.push(Note::Replaced(None, Cause::Unknown));
            return;
        }
        if let Note::Renamed(_, to) = &note {
            self.arrived.insert(to.clone());
        }
        self.notes.push(note);
    }

    /// Whether a note says that a key that is known goes by this name.
    pub fn has_arrived(&self, key: &Key) -> bool {
        !self.arrived.is_empty() && self.arrived.contains(key)
    }

    /// Whether a key may be of interest for what became of another one.
    pub fn has_moves(&self) -> bool {
        self.leaving.is_some() || !self.arrived.is_empty()
    }

    /// Notes of keys are void. Connections and grants are as they were; there are no
    /// more of those than clients.
    pub fn forget_keys(&mut self) {
        self.notes.retain(|note| !is_of_keys(note));
        self.arrived.clear();
    }

    /// A data set was loaded: that it was emptied before that is part of it.
    pub fn forget_flushes(&mut self) {
        self.notes
            .retain(|note| !matches!(note, Note::Replaced(..)));
    }

    /// Takes out all notes.
    pub fn take(&mut self) -> Vec<Note> {
        self.arrived.clear();
        std::mem::take(&mut self.notes)
    }
}

/// Whether a note says something of keys.
fn is_of_keys(note: &Note) -> bool {
    !matches!(note, Note::Closed(_) | Note::Lost(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_notes_than_are_kept_come_to_a_look_at_everything() {
        let mut inbox = Inbox::default();
        let key = |number: usize| Key::new(0, number.to_string().as_bytes());
        inbox.push(Note::Renamed(key(1), key(2)));
        inbox.push(Note::Closed(7));
        for number in 0..3 * MOST_NOTES {
            inbox.push(Note::Changed(key(number), Cause::Removed));
            assert!(inbox.notes.len() <= MOST_NOTES);
        }
        assert!(!inbox.has_arrived(&key(2)));
        let notes = inbox.take();
        assert_eq!(notes[0], Note::Closed(7));
        assert!(notes.contains(&Note::Replaced(None, Cause::Unknown)));
        // The last ones were heard after that.
        let last = Note::Changed(key(3 * MOST_NOTES - 1), Cause::Removed);
        assert_eq!(notes.last(), Some(&last));
    }
}
