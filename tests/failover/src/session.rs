//! One connection of queued waiters for many locks, which comes back with those that it
//! still wants.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::clock::{now_us, pause};
use crate::conn::{Conn, Gone};
use crate::judge::{Hold, Kind, ROUNDING};
use crate::resp::Value;
use crate::world::{code, World};

pub struct Session<'a> {
    pub world: &'a World,
    pub name: String,
    pub keys: usize,
    /// Says WAIT at once after the message, and no RENEW before it.
    pub bare: bool,
}

/// What the next reply belongs to.
enum Next {
    Asked(usize),
    Renewed(usize),
    Waited(usize),
    Nothing,
}

struct Life {
    conn: Conn,
    on_old: bool,
    next: VecDeque<Next>,
    /// Those without an answer.
    open: BTreeSet<usize>,
    /// Tag to the token, and when RENEW was sent; and whether that said 1.
    begins: BTreeMap<usize, (i64, u64, bool)>,
    /// What its holds are bound to.
    bound: BTreeMap<usize, u64>,
    /// An error was told: not for long any more.
    leaves: Option<u64>,
}

impl Session<'_> {
    pub fn key(&self, tag: usize) -> String {
        format!("q{}-{tag}", self.name)
    }

    pub fn run(&self) {
        let world = self.world;
        let mut wanted: Vec<usize> = (0..self.keys).collect();
        let mut on_old = true;
        while !world.is_quiet() && !wanted.is_empty() {
            let port = match on_old {
                true => Some(world.ways.servers[0]),
                false => world.ways.new_master(),
            };
            let conn = port.and_then(|port| Conn::open(port).ok());
            if let Some(mut life) = conn.and_then(|conn| self.enter(conn, on_old).ok()) {
                let gone = self.live(&mut life, &mut wanted);
                if gone == Gone::Closed {
                    world.waits(-(life.open.len() as i64));
                }
                let what = match gone {
                    Gone::Closed => "connection closed",
                    Gone::Silent => "still waiting",
                };
                if life.leaves.is_none() {
                    wanted
                        .iter()
                        .for_each(|_| world.told(Kind::Queue, what, on_old));
                }
                if !world.is_over() {
                    // A plain hold stays for its lease.
                    let watched = life.bound.iter().filter(|(tag, _)| *tag % 2 == 1);
                    watched.for_each(|(_, bound)| world.closed(*bound));
                }
            }
            on_old &= world.fault().is_none();
            pause(20);
        }
    }

    fn enter(&self, mut conn: Conn, on_old: bool) -> Result<Life, Gone> {
        conn.ask("HELLO 3")?;
        conn.ask(&format!("SUBSCRIBE rlock:{}", self.name))?;
        Ok(Life {
            conn,
            on_old,
            next: VecDeque::new(),
            open: BTreeSet::new(),
            begins: BTreeMap::new(),
            bound: BTreeMap::new(),
            leaves: None,
        })
    }

    /// Until the connection is of no use any more, or all is over. What it has or was
    /// refused for good is not wanted any more.
    fn live(&self, life: &mut Life, wanted: &mut Vec<usize>) -> Gone {
        let name = &self.name;
        let (lease, wait) = (self.world.times.lease, self.world.times.wait);
        self.world.waits(wanted.len() as i64);
        life.open = wanted.iter().copied().collect();
        let line = |tag: &usize| {
            let (key, watchdog) = (self.key(*tag), if tag % 2 == 1 { " WATCHDOG" } else { "" });
            format!("RLOCK.ACQUIRE {key} s{name}-{tag} {lease} QUEUE {wait} NOTIFY rlock:{name} {tag} ONCE{watchdog}")
        };
        let lines: Vec<String> = wanted.iter().map(line).collect();
        life.next.extend(wanted.iter().map(|tag| Next::Asked(*tag)));
        if life.conn.send(&lines).is_err() {
            return Gone::Closed;
        }
        while !self.world.is_over() {
            if life.leaves.is_some_and(|at| now_us() > at) {
                return Gone::Closed;
            }
            let done = match life.conn.next(now_us() + 100_000) {
                Ok(Value::Push(words)) => self.pushed(life, wanted, &words),
                Ok(reply) => self.replied(life, wanted, &reply),
                Err(Gone::Silent) => Ok(()),
                Err(Gone::Closed) => Err(Gone::Closed),
            };
            if done.is_err() {
                return Gone::Closed;
            }
        }
        Gone::Silent
    }

    fn pushed(
        &self,
        life: &mut Life,
        wanted: &mut Vec<usize>,
        words: &[Value],
    ) -> Result<(), Gone> {
        let text = words.get(2).and_then(Value::text).unwrap_or_default();
        let words: Vec<&str> = text.split(' ').collect();
        let (Some(what), Some(Ok(tag))) = (words.first(), words.get(1).map(|tag| tag.parse()))
        else {
            return Ok(());
        };
        if *what != "lost" && life.open.remove(&tag) {
            self.world.waits(-1);
        }
        match *what {
            "granted" => {
                let token = words.get(2).and_then(|token| token.parse().ok());
                return self.granted(life, tag, token.unwrap_or_default());
            }
            "timeout" => {
                self.world.told(Kind::Queue, "timeout", life.on_old);
                wanted.retain(|one| *one != tag);
            }
            "lost" => {
                let reason = words.get(2).copied().unwrap_or_default();
                let what = format!("lost … {reason}");
                self.world.told(Kind::Queue, &what, life.on_old);
                if let Some(bound) = life.bound.get(&tag) {
                    self.world.closed(*bound);
                }
            }
            _ => {
                let what = format!("error … {}", words.get(2).copied().unwrap_or_default());
                self.world.told(Kind::Queue, &what, life.on_old);
                life.leaves.get_or_insert(now_us() + 300_000);
            }
        }
        Ok(())
    }

    fn granted(&self, life: &mut Life, tag: usize, token: i64) -> Result<(), Gone> {
        self.world.told(Kind::Queue, "granted", life.on_old);
        self.world.granted(life.on_old, now_us());
        let key = self.key(tag);
        let mut lines = Vec::new();
        if !self.bare {
            lines.push(format!(
                "RLOCK.RENEW {key} s{}-{tag} {}",
                self.name, self.world.times.lease
            ));
            life.next.push_back(Next::Renewed(tag));
        }
        // Without a rule PING stands for it, so that there is one way through here.
        let wait = self.world.rule.wait_line(life.on_old);
        lines.push(wait.unwrap_or_else(|| "PING".to_owned()));
        life.next.push_back(Next::Waited(tag));
        life.begins.insert(tag, (token, now_us(), self.bare));
        life.conn.send(&lines)
    }

    fn replied(&self, life: &mut Life, wanted: &mut Vec<usize>, reply: &Value) -> Result<(), Gone> {
        let next = life.next.pop_front();
        if let (Some(Next::Asked(tag)), Value::Int(_) | Value::Error(_)) = (&next, reply) {
            if life.open.remove(tag) {
                self.world.waits(-1);
            }
        }
        match (next, reply) {
            (Some(Next::Asked(tag)), Value::Int(token)) => {
                return self.granted(life, tag, *token);
            }
            (Some(Next::Asked(_)), Value::Error(text)) => {
                self.world.told(Kind::Queue, code(text), life.on_old);
                life.leaves.get_or_insert(now_us() + 300_000);
            }
            (Some(Next::Renewed(tag)), Value::Int(1)) => {
                if let Some(begin) = life.begins.get_mut(&tag) {
                    begin.2 = true;
                }
            }
            (Some(Next::Waited(tag)), reply) => return self.begin(life, wanted, tag, reply),
            _ => {}
        }
        Ok(())
    }

    fn begin(
        &self,
        life: &mut Life,
        wanted: &mut Vec<usize>,
        tag: usize,
        reply: &Value,
    ) -> Result<(), Gone> {
        let world = self.world;
        let Some((token, call, renewed)) = life.begins.remove(&tag) else {
            return Ok(());
        };
        let least = i64::from(world.rule.replicas(life.on_old));
        let enough = least == 0 || matches!(reply, Value::Int(count) if *count >= least);
        let (key, owner) = (self.key(tag), format!("s{}-{tag}", self.name));
        if !renewed || !enough {
            world.notes().not_begun += 1;
            life.next.push_back(Next::Nothing);
            life.leaves.get_or_insert(now_us() + 300_000);
            return life
                .conn
                .send(&[format!("RLOCK.RELEASE {key} {owner} IFHELD")]);
        }
        wanted.retain(|one| *one != tag);
        let bound = world.number();
        life.bound.insert(tag, bound);
        world.begun(vec![Hold {
            key,
            owner,
            kind: Kind::Queue,
            on_old: life.on_old,
            bound: Some(bound),
            from: now_us(),
            to: (call + world.times.lease * 1000).saturating_sub(ROUNDING),
            token,
        }]);
        Ok(())
    }
}
