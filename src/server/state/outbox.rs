//! What is to go out when the turn of the event loop ends: messages, where they may not leave
//! in the middle of a command, and lines of the log, of which there may be very many.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::lock::{Address, ClientId, WaiterId};

/// A message that was put off.
pub struct Letter {
    pub to: Address,
    pub message: Vec<u8>,
    pub if_undelivered: IfUndelivered,
}

/// What follows if its receiver does not listen any more when a message is sent.
#[derive(Clone, Copy)]
pub enum IfUndelivered {
    Nothing,
    /// The grant that it announces is lost.
    LoseGrant(WaiterId),
    /// The connection is to be closed that lost a watchdog hold.
    Close(ClientId),
}

/// Of more lines than this at once the log says only how many they were: a log with a hundred
/// thousand of them helps nobody at night.
const MOST_LINES: usize = 1000;

#[derive(Default)]
pub struct Outbox {
    messages: RefCell<Vec<Letter>>,
    lines: RefCell<VecDeque<String>>,
    /// So many lines more were left out.
    left_out: Cell<u64>,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        !self.has_messages() && !self.has_lines()
    }

    pub fn has_messages(&self) -> bool {
        !self.messages.borrow().is_empty()
    }

    pub fn put(&self, letter: Letter) {
        self.messages.borrow_mut().push(letter);
    }

    pub fn take(&self) -> Vec<Letter> {
        self.messages.take()
    }

    /// A line about a lost hold.
    pub fn put_line(&self, line: impl FnOnce() -> String) {
        let mut lines = self.lines.borrow_mut();
        if lines.len() < MOST_LINES {
            lines.push_back(line());
        } else {
            self.left_out.set(self.left_out.get().saturating_add(1));
        }
    }

    pub fn has_lines(&self) -> bool {
        !self.lines.borrow().is_empty()
    }

    pub fn take_lines(&self, most: usize) -> Vec<String> {
        let mut lines = self.lines.borrow_mut();
        let most = most.min(lines.len());
        let mut taken: Vec<_> = lines.drain(..most).collect();
        if !lines.is_empty() {
            return taken;
        }
        *lines = VecDeque::new();
        let left_out = self.left_out.take();
        if left_out > 0 {
            taken.push(format!(
                "rlock: lost: {left_out} more, not named one by one"
            ));
        }
        taken
    }
}
