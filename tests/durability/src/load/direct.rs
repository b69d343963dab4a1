//! One who takes locks that nobody else asks for, many requests in one write.

use super::Client;
use crate::conn::Gone;
use crate::item::{Item, Mode};
use crate::resp::Value;

/// Keys for each client; of every kind.
const SLOTS: usize = 40;
/// Permits of a lock.
const LIMIT: i64 = 5;
/// Locks that are taken at once.
const SEVERAL: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Several,
    ReadWrite,
    Permits,
}

/// A lock (or several that are taken together), and what is held of it.
struct Slot {
    kind: Kind,
    key: String,
    held: Vec<Vec<usize>>,
    /// Refused by what is left of others.
    stuck: bool,
}

impl Slot {
    fn keys(&self) -> Vec<String> {
        match self.kind {
            Kind::Several => (0..SEVERAL)
                .map(|at| format!("{}.{at}", self.key))
                .collect(),
            _ => vec![self.key.clone()],
        }
    }

    /// `key`, or `numkeys key ...`, and the prefix of the commands for it.
    fn target(&self) -> (&'static str, String) {
        let keys = self.keys().join(" ");
        match self.kind {
            Kind::Several => ("M", format!("{SEVERAL} {keys}")),
            _ => ("", keys),
        }
    }
}

#[derive(Clone, Copy)]
enum By {
    Itself,
    Script,
    Multi,
}

/// A request that is under way.
struct Asked {
    slot: usize,
    items: Vec<usize>,
    line: String,
    by: By,
    /// The reply, where it is known.
    expects: Option<i64>,
    /// Nothing is known of it any more after this.
    forget: bool,
}

impl Client<'_> {
    pub(super) fn direct(&mut self) -> Result<(), Gone> {
        let db = (self.number % 2) as u8;
        self.conn.ask(&format!("SELECT {db}"))?;
        let kinds = [Kind::Plain, Kind::Several, Kind::ReadWrite, Kind::Permits];
        let slot = |at: usize| Slot {
            kind: kinds[at % kinds.len()],
            key: format!("{}d{}:{at}", self.load.name, self.number),
            held: Vec::new(),
            stuck: false,
        };
        let mut slots: Vec<Slot> = (0..SLOTS).map(slot).collect();
        while !self.load.is_over() {
            let count = self.rng.usize(1..8);
            let chosen = self.rng.choose_multiple(0..SLOTS, count);
            let mut batch = Vec::new();
            for slot in chosen {
                batch.push(self.draw(db, slot, &mut slots[slot]));
            }
            let lines: Vec<String> = batch.iter().flat_map(said).collect();
            self.journal.requests += batch.len() as u64;
            self.conn.send(&lines)?;
            for asked in batch {
                let reply = self.reply(asked.by)?;
                let slot = &mut slots[asked.slot];
                self.heard(slot, &asked, &reply)?;
            }
        }
        Ok(())
    }

    fn reply(&mut self, by: By) -> Result<Value, Gone> {
        if !matches!(by, By::Multi) {
            return self.next();
        }
        let (_, _, last) = (self.next()?, self.next()?, self.next()?);
        let first = last.array().first().cloned();
        Ok(first.unwrap_or(last))
    }

    fn heard(&mut self, slot: &mut Slot, asked: &Asked, reply: &Value) -> Result<(), Gone> {
        match reply {
            Value::Int(number) if asked.expects.is_none_or(|all| all == *number) => {
                let fenced = asked.line.contains("FENCE");
                let token = (fenced || asked.line.contains("ACQUIRE")).then_some(*number);
                self.done(&asked.items, token, fenced);
                let gone = |at: &usize| self.journal.items[*at].now().holds == 0;
                if asked.forget || asked.items.iter().all(gone) {
                    slot.held.retain(|items| *items != asked.items);
                } else if !slot.held.contains(&asked.items) {
                    slot.held.push(asked.items.clone());
                }
                Ok(())
            }
            Value::Null => {
                asked.items.iter().for_each(|at| self.at(*at).refused());
                slot.stuck = true;
                Ok(())
            }
            // Somebody else had a hand in it.
            _ if self.load.loose => {
                slot.held.clear();
                let text = match reply {
                    Value::Error(text) => text,
                    _ => return Ok(()),
                };
                match text.starts_with("READONLY") || text.starts_with("LOADING") {
                    true => Err(Gone::Closed),
                    false => Ok(()),
                }
            }
            reply => Err(self.strange(&asked.line, reply)),
        }
    }

    fn draw(&mut self, db: u8, number: usize, slot: &mut Slot) -> Asked {
        let by = match self.rng.u8(..10) {
            0 => By::Script,
            1 => By::Multi,
            _ => By::Itself,
        };
        let mut asked = Asked {
            slot: number,
            items: Vec::new(),
            line: String::new(),
            by,
            expects: None,
            forget: false,
        };
        if self.load.loose && (slot.stuck || self.rng.u8(..20) == 0) {
            slot.stuck = false;
            asked.line = self.meddle(slot);
            return asked;
        }
        let room = match slot.kind {
            Kind::Plain | Kind::Several => slot.held.is_empty(),
            Kind::ReadWrite | Kind::Permits => slot.held.len() < 3,
        };
        if slot.held.is_empty() || room && self.rng.u8(..3) == 0 {
            self.draw_first(db, slot, &mut asked);
        } else {
            self.draw_next(slot, &mut asked);
        }
        asked
    }

    /// What operators and others do.
    fn meddle(&mut self, slot: &Slot) -> String {
        let key = &slot.keys()[0];
        match self.rng.u8(..8) {
            0 => format!("DEL {key}"),
            1 => format!("PEXPIRE {key} {}", self.rng.u64(300_000..900_000)),
            2 => format!("RLOCK.LIMIT {key} {}", self.rng.u8(1..9)),
            3 => format!("RENAME {key} {}:old", slot.key),
            _ => format!("RLOCK.FORCE {key}"),
        }
    }

    /// One request in ten is for a lease that is over soon.
    fn lease(&mut self, item: usize, asked: &mut Asked) -> u64 {
        asked.forget = self.rng.u8(..10) == 0;
        match asked.forget {
            true => self.rng.u64(20..400),
            false => self.at(item).next_lease(),
        }
    }

    fn draw_first(&mut self, db: u8, slot: &Slot, asked: &mut Asked) {
        let owner = self.owner();
        let (mode, words, holds) = match slot.kind {
            Kind::Plain | Kind::Several => (Mode::Plain, String::new(), 1),
            Kind::ReadWrite if slot.held.is_empty() && self.rng.bool() => {
                (Mode::Write, " WRITE".to_owned(), 1)
            }
            Kind::ReadWrite => (Mode::Read, " READ".to_owned(), 1),
            Kind::Permits => {
                let holds = self.rng.i64(1..3);
                let words = format!(" LIMIT {LIMIT} PERMITS {holds}");
                (Mode::Permits, words, holds)
            }
        };
        for key in slot.keys() {
            let at = self.item(Item::new(db, &key, &owner, mode));
            asked.items.push(at);
        }
        let lease = self.lease(asked.items[0], asked);
        for at in &asked.items {
            self.at(*at).ask(holds, Some(lease));
        }
        let (many, target) = slot.target();
        asked.line = format!("RLOCK.{many}ACQUIRE {target} {owner} {lease}{words}");
    }

    fn draw_next(&mut self, slot: &Slot, asked: &mut Asked) {
        let items = slot.held[self.rng.usize(..slot.held.len())].clone();
        let first = self.at(items[0]);
        let (owner, mode, holds) = (first.owner.clone(), first.mode, first.now().holds);
        asked.items.clone_from(&items);
        let (many, target) = slot.target();
        let word = mode.word();
        let (after, lease) = match self.rng.u8(..10) {
            0..2 if holds < 4 => {
                let lease = self.at(items[0]).next_lease();
                let words = match mode {
                    Mode::Permits => format!(" LIMIT {LIMIT} PERMITS 1"),
                    _ => word.to_owned(),
                };
                asked.line = format!("RLOCK.{many}ACQUIRE {target} {owner} {lease}{words}");
                (holds + 1, Some(lease))
            }
            0..6 => {
                let lease = self.lease(items[0], asked);
                let fence = slot.kind != Kind::Several && self.rng.u8(..4) == 0;
                asked.expects = (!fence).then_some(1);
                let fence = if fence { " FENCE 1" } else { "" };
                asked.line = format!("RLOCK.{many}RENEW {target} {owner} {lease}{word}{fence}");
                (holds, Some(lease))
            }
            6 if slot.kind != Kind::Several => {
                asked.line = format!("RLOCK.RELEASE {target} {owner}{word} ALL");
                asked.expects = Some(0);
                (0, None)
            }
            _ => {
                asked.line = format!("RLOCK.{many}RELEASE {target} {owner}{word}");
                asked.expects = Some(match slot.kind {
                    Kind::Several => SEVERAL as i64,
                    _ => holds - 1,
                });
                (holds - 1, None)
            }
        };
        for at in &items {
            self.at(*at).ask(after, lease);
        }
    }
}

/// The lines that a request takes.
fn said(asked: &Asked) -> Vec<String> {
    let line = asked.line.clone();
    match asked.by {
        By::Itself => vec![line],
        By::Script => vec![format!("EVAL return(redis.call(unpack(ARGV))) 0 {line}")],
        By::Multi => vec!["MULTI".to_owned(), line, "EXEC".to_owned()],
    }
}
