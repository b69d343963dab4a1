//! A request to a driver that was sent.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use rlock_torture::saw::{Ask, Record};
use serde_json::Value;

use crate::book::Book;

/// An answer that has not come by then never comes.
const ANSWER: Duration = Duration::from_secs(60);

/// A request that has no answer yet.
pub struct Asked {
    pub id: u64,
    pub ask: Ask,
    pub answer: Receiver<(u64, Value)>,
    pub book: Arc<Book>,
}

impl Asked {
    /// Its answer, if it comes within this time.
    pub fn wait(&mut self, time: Duration) -> Option<Ask> {
        match self.answer.recv_timeout(time) {
            Ok((at, out)) => {
                self.ask.reply = Some(at);
                self.ask.out = out;
            }
            Err(RecvTimeoutError::Timeout) => return None,
            // Whoever would answer is dead.
            Err(RecvTimeoutError::Disconnected) => (),
        }
        Some(self.written())
    }

    /// Of the process that was asked.
    pub fn life(&self) -> u32 {
        self.ask.life
    }

    pub fn finish(mut self) -> Ask {
        self.wait(ANSWER).unwrap_or_else(|| self.written())
    }

    fn written(&self) -> Ask {
        self.book.write(&Record::Ask(self.ask.clone()));
        self.ask.clone()
    }
}
