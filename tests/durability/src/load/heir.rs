//! Locks of one's own whose holder goes in one of three ways; who waits for it then keeps
//! it, so that grants to waiters are there when the server is killed.

use std::sync::atomic::Ordering;

use super::Client;
use crate::conn::{Conn, Gone};
use crate::item::{Item, Mode};
use crate::resp::Value;

/// So many are kept by each client, of so many names.
const KEPT: usize = 40;
const NAMES: u64 = 80;

/// How the first holder goes.
pub enum Goes {
    /// Its lease ends.
    Expires,
    /// It gives the lock back: by this line, for this item.
    Releases(String, usize),
    /// Its connection closes.
    Closes { _by: Conn },
}

pub struct Own {
    pub key: String,
    pub mode: Mode,
    pub words: &'static str,
    pub goes: Goes,
}

impl Client<'_> {
    /// A lock that somebody has for now. None: it could not be had.
    pub(super) fn own(&mut self) -> Result<Option<Own>, Gone> {
        let first = self.owner();
        let key = format!("{}h{}:{}", self.load.name, self.number, self.serial % NAMES);
        let (mode, words) = match self.rng.u8(..3) {
            0 => (Mode::Plain, ""),
            1 => (Mode::Write, " WRITE"),
            _ => (Mode::Permits, " LIMIT 1"),
        };
        let mut item = Item::new(0, &key, &first, mode);
        let way = self.rng.u8(..3);
        item.watched = way == 0;
        let lease = match way {
            1 => self.rng.u64(5..40),
            _ => item.next_lease(),
        };
        item.ask(1, Some(lease));
        let at = self.item(item);
        self.journal.requests += 1;
        let line = format!("RLOCK.ACQUIRE {key} {first} {lease}{words}");
        let (reply, by) = match way {
            0 => {
                let mut by = Conn::open(self.load.port.load(Ordering::SeqCst))?;
                (by.ask(&format!("{line} WATCHDOG"))?, Some(by))
            }
            _ => (self.asked(&line)?, None),
        };
        match reply {
            Value::Int(token) => self.done(&[at], Some(token), false),
            // Somebody has it from an earlier life.
            Value::Null => {
                self.at(at).refused();
                return Ok(None);
            }
            reply => return Err(self.strange(&line, &reply)),
        }
        let goes = match (way, by) {
            (0, Some(by)) => {
                self.at(at).ask(0, None);
                Goes::Closes { _by: by }
            }
            (1, _) => Goes::Expires,
            _ => {
                let word = mode.word();
                Goes::Releases(format!("RLOCK.RELEASE {key} {first}{word}"), at)
            }
        };
        Ok(Some(Own {
            key,
            mode,
            words,
            goes,
        }))
    }

    /// One connection for this alone.
    fn asked(&mut self, line: &str) -> Result<Value, Gone> {
        let port = self.load.port.load(Ordering::SeqCst);
        if self.beside.is_none() {
            self.beside = Some(Conn::open(port)?);
        }
        let Some(beside) = &mut self.beside else {
            return Err(Gone::Closed);
        };
        beside.ask(line)
    }

    /// Says it for this item, by that connection too.
    pub(super) fn beside(&mut self, line: &str, at: usize) -> Result<(), Gone> {
        self.journal.requests += 1;
        self.at(at).ask(0, None);
        match self.asked(line)? {
            Value::Int(_) => {
                self.done(&[at], None, false);
                Ok(())
            }
            reply => Err(self.strange(line, &reply)),
        }
    }

    /// Keeps what was granted, and gives back the oldest of too many.
    pub(super) fn keep(&mut self, at: usize) -> Result<(), Gone> {
        self.kept.push_back(at);
        if self.kept.len() <= KEPT {
            return Ok(());
        }
        let Some(old) = self.kept.pop_front() else {
            return Ok(());
        };
        let item = self.at(old);
        let (key, owner, word) = (item.key.clone(), item.owner.clone(), item.mode.word());
        self.beside(&format!("RLOCK.RELEASE {key} {owner}{word}"), old)
    }
}
