//! A session whose queued waiters want several locks at once, and that gives them back.

use std::collections::{BTreeMap, VecDeque};

use super::heir::Goes;
use super::Client;
use crate::conn::Gone;
use crate::item::Item;
use crate::resp::Value;

/// So many waits at once.
const WAITS: usize = 6;

/// What the next reply belongs to.
enum Due {
    Asked(u64),
    Set(usize),
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Release,
    Expires,
    Keep,
}

#[derive(Default)]
struct Session {
    due: VecDeque<Due>,
    /// Tag to item, and what becomes of it then.
    waits: BTreeMap<u64, (usize, Then)>,
    tags: u64,
}

impl Client<'_> {
    pub(super) fn queue(&mut self) -> Result<(), Gone> {
        self.conn.ask("HELLO 3")?;
        self.conn.ask(&format!("SUBSCRIBE rlock:{}", self.who))?;
        let mut session = Session::default();
        while !self.load.is_over() {
            while session.waits.len() < WAITS {
                self.wait(&mut session)?;
            }
            match self.next()? {
                Value::Push(words) => self.told(&mut session, &words)?,
                reply => self.answered(&mut session, &reply)?,
            }
        }
        Ok(())
    }

    fn wait(&mut self, session: &mut Session) -> Result<(), Gone> {
        let own = match self.rng.bool() {
            true => self.own()?,
            false => None,
        };
        let (key, mode, words) = match &own {
            Some(own) => (own.key.clone(), own.mode, own.words),
            None => self.shared(),
        };
        let owner = self.owner();
        session.tags += 1;
        let tag = session.tags;
        let mut item = Item::new(0, &key, &owner, mode);
        let then = match &own {
            Some(_) => Then::Keep,
            None if self.rng.u8(..6) == 0 => Then::Expires,
            None => Then::Release,
        };
        item.watched = then == Then::Release && self.rng.u8(..4) == 0;
        let watchdog = if item.watched { " WATCHDOG" } else { "" };
        let lease = match then {
            Then::Expires => self.rng.u64(5..40),
            _ => item.next_lease(),
        };
        item.ask(1, Some(lease));
        let at = self.item(item);
        session.waits.insert(tag, (at, then));
        session.due.push_back(Due::Asked(tag));
        let who = &self.who;
        let line = format!(
            "RLOCK.ACQUIRE {key} {owner} {lease}{words} QUEUE 120000 NOTIFY rlock:{who} {tag}{watchdog} ONCE"
        );
        self.journal.requests += 1;
        self.conn.send(&[line])?;
        match own.map(|own| own.goes) {
            Some(Goes::Releases(line, first)) => self.beside(&line, first),
            _ => Ok(()),
        }
    }

    fn told(&mut self, session: &mut Session, words: &[Value]) -> Result<(), Gone> {
        let text = words.get(2).and_then(Value::text).unwrap_or_default();
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["granted", tag, token] => {
                let tag = tag.parse().unwrap_or(0);
                self.granted(session, tag, token.parse().unwrap_or(0))
            }
            ["lost", ..] | [""] => Ok(()),
            _ => {
                let text = Value::Text(text.to_owned());
                Err(self.strange("QUEUE", &text))
            }
        }
    }

    fn granted(&mut self, session: &mut Session, tag: u64, token: i64) -> Result<(), Gone> {
        let Some((at, then)) = session.waits.remove(&tag) else {
            let text = Value::Text(format!("{tag} {token}"));
            return Err(self.strange("granted twice", &text));
        };
        self.journal.waited += 1;
        self.done(&[at], Some(token), false);
        match then {
            Then::Expires => return Ok(()),
            Then::Keep => return self.keep(at),
            Then::Release => {}
        }
        let item = self.at(at);
        let (key, owner, word) = (item.key.clone(), item.owner.clone(), item.mode.word());
        item.ask(0, None);
        session.due.push_back(Due::Set(at));
        self.journal.requests += 1;
        self.conn
            .send(&[format!("RLOCK.RELEASE {key} {owner}{word}")])
    }

    fn answered(&mut self, session: &mut Session, reply: &Value) -> Result<(), Gone> {
        match (session.due.pop_front(), reply) {
            (Some(Due::Asked(tag)), Value::Int(token)) => self.granted(session, tag, *token),
            (Some(Due::Asked(_)), Value::Simple(text)) if text == "QUEUED" => Ok(()),
            (Some(Due::Set(at)), Value::Int(_)) => {
                self.done(&[at], None, false);
                Ok(())
            }
            _ => Err(self.strange("a session", reply)),
        }
    }
}
