//! What is to go out when the turn of the event loop ends: messages, where they may not leave
//! in the middle of a command, and lines of the log, of which there may be very many.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::lock::{Address, ClientId, WaiterId};

/// A message that was put off.
pub struct Letter {
    pub to: Address,
    pub message: Vec<u8>,
    pub unheard: Unheard,
}

/// What follows if nobody hears a message any more when it is sent.
#[derive(Clone, Copy)]
pub enum Unheard {
    Nothing,
    /// The grant that it tells of is lost.
    Lost(WaiterId),
    /// The connection is to be closed that lost a watchdog hold.
    Close(ClientId),
}

#[derive(Default)]
pub struct Outbox {
    messages: RefCell<Vec<Letter>>,
    lines: RefCell<VecDeque<String>>,
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

    pub fn put_line(&self, line: String) {
        self.lines.borrow_mut().push_back(line);
    }

    pub fn has_lines(&self) -> bool {
        !self.lines.borrow().is_empty()
    }

    pub fn take_lines(&self, most: usize) -> Vec<String> {
        let mut lines = self.lines.borrow_mut();
        let most = most.min(lines.len());
        lines.drain(..most).collect()
    }
}
