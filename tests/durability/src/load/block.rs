//! A blocked waiter for what others have, gives it back, and waits again.

use super::heir::Goes;
use super::Client;
use crate::clock::pause;
use crate::conn::{Conn, Gone};
use crate::item::{Item, Mode};
use crate::resp::Value;
use std::sync::atomic::Ordering;

const WAIT: u64 = 120_000;

impl Client<'_> {
    pub(super) fn block(&mut self) -> Result<(), Gone> {
        while !self.load.is_over() {
            match self.rng.u8(..8) {
                0 => self.block_for_two()?,
                1..4 => self.inherit()?,
                _ => self.block_for_one()?,
            }
            self.journal.waited += 1;
            let rest = self.rng.u64(..3);
            pause(rest);
        }
        Ok(())
    }

    fn block_for_one(&mut self) -> Result<(), Gone> {
        let (key, mode, words) = self.shared();
        let owner = self.owner();
        let watched = self.rng.u8(..4) == 0;
        // Whose lease ends soon gives nothing back: the next is granted then.
        let short = (!watched && self.rng.u8(..6) == 0).then(|| self.rng.u64(5..40));
        let mut item = Item::new(0, &key, &owner, mode);
        item.watched = watched;
        let lease = short.unwrap_or_else(|| item.next_lease());
        item.ask(1, Some(lease));
        let at = self.item(item);
        let watchdog = if watched { " WATCHDOG" } else { "" };
        let line = format!("RLOCK.ACQUIRE {key} {owner} {lease}{words} BLOCK {WAIT}{watchdog}");
        self.say(&line, &[at])?;
        if short.is_some() {
            return Ok(());
        }
        if watched && self.rng.u8(..3) == 0 {
            // Its close gives it back, of which nobody says that it is done.
            self.at(at).ask(0, None);
            let port = self.load.port.load(Ordering::SeqCst);
            self.conn = Conn::open(port)?;
            return Ok(());
        }
        if !watched && self.rng.u8(..3) == 0 {
            let lease = self.at(at).next_lease();
            self.at(at).ask(1, Some(lease));
            let line = format!("RLOCK.RENEW {key} {owner} {lease}{}", mode.word());
            self.say(&line, &[at])?;
        }
        self.at(at).ask(0, None);
        let line = format!("RLOCK.RELEASE {key} {owner}{}", mode.word());
        self.say(&line, &[at])
    }

    fn inherit(&mut self) -> Result<(), Gone> {
        let Some(own) = self.own()? else {
            return Ok(());
        };
        let (key, owner, words) = (own.key, self.owner(), own.words);
        let mut item = Item::new(0, &key, &owner, own.mode);
        let lease = item.next_lease();
        item.ask(1, Some(lease));
        let at = self.item(item);
        let line = format!("RLOCK.ACQUIRE {key} {owner} {lease}{words} BLOCK {WAIT}");
        self.journal.requests += 1;
        self.conn.send(&[&line])?;
        match own.goes {
            Goes::Releases(line, first) => self.beside(&line, first)?,
            goes => drop(goes),
        }
        self.replied(&line, &[at])?;
        self.keep(at)
    }

    fn block_for_two(&mut self) -> Result<(), Gone> {
        let owner = self.owner();
        let keys = ["c0", "c1"].map(|key| format!("{}{key}", self.load.name));
        let mut both = Vec::new();
        let mut lease = 0;
        for key in &keys {
            let mut item = Item::new(0, key, &owner, Mode::Plain);
            lease = item.next_lease();
            item.ask(1, Some(lease));
            both.push(self.item(item));
        }
        let keys = keys.join(" ");
        let line = format!("RLOCK.MACQUIRE 2 {keys} {owner} {lease} BLOCK {WAIT}");
        self.say(&line, &both)?;
        both.iter().for_each(|at| self.at(*at).ask(0, None));
        self.say(&format!("RLOCK.MRELEASE 2 {keys} {owner}"), &both)
    }

    /// One request, and its reply for these items.
    fn say(&mut self, line: &str, items: &[usize]) -> Result<(), Gone> {
        self.journal.requests += 1;
        self.conn.send(&[line])?;
        self.replied(line, items)
    }

    fn replied(&mut self, line: &str, items: &[usize]) -> Result<(), Gone> {
        match self.next()? {
            Value::Int(number) => {
                let token = line.contains("ACQUIRE").then_some(number);
                self.done(items, token, false);
                Ok(())
            }
            reply => Err(self.strange(line, &reply)),
        }
    }
}
