//! Clients that take and give back locks of all kinds, and what they saw.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::client::{Answer, Client};
use super::judge::{Held, Mode};
use super::nodes::Ports;
use crate::clock::{now_us, pause};
use crate::judge::ROUNDING;
use crate::resp::Value;
use crate::world::code;

pub const KEYS: usize = 1000;
/// Most ask for one of the first of them.
const HOT: usize = 60;
pub const LEASE: u64 = 5_000;
const WAIT: u64 = 1_500;
/// For one request and all its repetitions, ms.
const PATIENCE: u64 = 20_000;
pub const LIMIT: u64 = 2;

pub struct Load {
    pub ports: Ports,
    pub with_wait: bool,
    over: AtomicBool,
    next: AtomicU64,
    notes: Mutex<Notes>,
}

#[derive(Default)]
pub struct Notes {
    pub held: Vec<Held>,
    pub counts: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Modes,
    Permits,
    Several,
    Watchdog,
    Block,
    Queue,
}

/// What it is used for goes by its number.
pub fn name(at: usize) -> String {
    match kind(at) {
        Kind::Several => format!("m{{{}}}{}", at / 14, at % 14 / 7),
        _ => format!("k{at}"),
    }
}

fn kind(at: usize) -> Kind {
    use Kind::{Block, Modes, Permits, Plain, Queue, Several, Watchdog};
    [Plain, Modes, Permits, Several, Watchdog, Block, Queue][at % 7]
}

impl Load {
    pub fn new(ports: Ports, with_wait: bool) -> Self {
        Self {
            ports,
            with_wait,
            over: AtomicBool::new(false),
            next: AtomicU64::new(1),
            notes: Mutex::default(),
        }
    }

    pub fn stop(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self, what: &str) {
        *self.notes().counts.entry(what.to_owned()).or_default() += 1;
    }

    pub fn draw(&self) -> usize {
        match fastrand::u8(..10) {
            0..7 => fastrand::usize(..HOT),
            _ => fastrand::usize(..KEYS),
        }
    }

    pub fn work(&self, id: usize) {
        let mut client = Client::new(self);
        let mut number = 0;
        while !self.is_over() {
            let at = self.draw();
            if kind(at) == Kind::Queue {
                super::session::work(self, &name(at), &format!("s{id}.{number}"));
            } else {
                self.job(&mut client, at, &format!("o{id}.{number}"));
            }
            number += 1;
        }
    }

    fn job(&self, client: &mut Client, at: usize, owner: &str) {
        let key = name(at);
        let mut keys = vec![key.clone()];
        let (mut mode, mut word, mut more) = (Mode::Alone, String::new(), "");
        match kind(at) {
            Kind::Modes if fastrand::bool() => (mode, word) = (Mode::Read, " READ".to_owned()),
            Kind::Modes => word = " WRITE".to_owned(),
            Kind::Permits => (mode, word) = (Mode::Permit, format!(" LIMIT {LIMIT}")),
            Kind::Watchdog => more = " WATCHDOG",
            Kind::Several => {
                keys = (0..2).map(|of| format!("m{{{}}}{of}", at / 14)).collect();
            }
            _ => {}
        }
        if kind(at) == Kind::Block || fastrand::bool() {
            word = format!("{word} BLOCK {WAIT}");
        }
        self.count("requests");
        let line = match keys.len() {
            1 => format!("RLOCK.ACQUIRE {key} {owner} {LEASE}{word}{more} ONCE"),
            n => format!(
                "RLOCK.MACQUIRE {n} {} {owner} {LEASE}{word} ONCE",
                keys.join(" ")
            ),
        };
        let Some(answer) = client.call(&key, &line, PATIENCE) else {
            return self.count("gave up");
        };
        match &answer.value {
            Value::Int(_) => {}
            Value::Error(text) => return self.count(&format!("refused {}", code(text))),
            _ => return self.count("not had"),
        }
        self.count("grants");
        let begins = !self.with_wait || has_arrived(client, &answer, &keys, owner, mode);
        let from = now_us();
        if begins {
            pause(fastrand::u64(..12));
        } else {
            self.count("WAIT too few");
        }
        let watched = more == " WATCHDOG";
        self.give_back(
            client,
            &keys,
            owner,
            (mode, watched),
            &answer,
            begins.then_some(from),
        );
    }

    fn give_back(
        &self,
        client: &mut Client,
        keys: &[String],
        owner: &str,
        (mode, watched): (Mode, bool),
        answer: &Answer,
        from: Option<u64>,
    ) {
        // A hold that is bound to a connection may have been lost with it, and is told so.
        let open = !watched || client.is_open(answer);
        let to = (answer.call + LEASE * 1000).saturating_sub(ROUNDING);
        for key in keys {
            let sent = now_us();
            if let (Some(from), true) = (from, open) {
                self.notes().held.push(Held {
                    key: key.clone(),
                    owner: owner.to_owned(),
                    mode,
                    from,
                    to: to.min(sent),
                });
            }
            let word = match mode {
                Mode::Permit => " PERMITS ALL",
                _ => mode_word(mode, key),
            };
            let reply = client.call(key, &format!("RLOCK.RELEASE {key} {owner}{word}"), PATIENCE);
            let late = now_us() + 500_000 > to;
            // It may have been closed since, which tells of the loss too.
            let same = reply
                .as_ref()
                .is_some_and(|reply| reply.conn == answer.conn);
            let untold = open && !late && (same || !watched);
            match reply.map(|answer| answer.value) {
                None => self.count("gave up"),
                Some(Value::Int(_)) => self.count("released"),
                // Also the reply to a release that was sent again.
                Some(Value::Error(text)) if untold => {
                    self.count(&format!(
                        "release: {}{}",
                        code(&text),
                        if watched { " watched" } else { "" }
                    ));
                }
                Some(_) => self.count("release after a loss that was told, or late"),
            }
        }
    }
}

/// Whether the replica has it. WAIT alone would not know of a grant that was waited for.
fn has_arrived(
    client: &mut Client,
    answer: &Answer,
    keys: &[String],
    owner: &str,
    mode: Mode,
) -> bool {
    let renewal = match keys {
        [key] => format!("RLOCK.RENEW {key} {owner} {LEASE}{}", mode_word(mode, key)),
        _ => {
            let (count, all) = (keys.len(), keys.join(" "));
            format!("RLOCK.MRENEW {count} {all} {owner} {LEASE}")
        }
    };
    let mut says = |line: &str| matches!(client.there(answer, line), Some(Value::Int(1..)));
    says(&renewal) && says("WAIT 1 100")
}

fn mode_word(mode: Mode, key: &str) -> &'static str {
    match mode {
        Mode::Read => " READ",
        Mode::Permit => " PERMITS",
        Mode::Alone if key.starts_with('k') && kind_of(key) == Kind::Modes => " WRITE",
        Mode::Alone => "",
    }
}

fn kind_of(key: &str) -> Kind {
    key[1..].parse().map_or(Kind::Plain, kind)
}
