//! One who takes locks all the time: names of his own, and what was taken on the other
//! side. He stays with the old master for as long as it lets him.

use crate::clock::{now_us, pause};
use crate::conn::{Conn, Gone};
use crate::judge::{Hold, Kind, ROUNDING};
use crate::resp::Value;
use crate::world::{code, World};

/// Keys of his own, and of the other side, in one write.
const OWN: usize = 48;
const OTHERS: usize = 48;
/// A watchdog's lease in every second batch, ms.
const SHORT: u64 = 3_000;

pub struct Worker<'a> {
    pub world: &'a World,
    pub id: u64,
    pub watchdog: bool,
}

/// His connection, and who he is on it.
struct Life {
    conn: Conn,
    number: u64,
    owner: String,
    on_old: bool,
}

struct Grant {
    key: String,
    token: i64,
    at: u64,
}

impl Worker<'_> {
    pub fn run(&self, from_the_start: bool) {
        let world = self.world;
        let mut on_old = from_the_start;
        while !world.is_quiet() {
            let port = match on_old {
                true => Some(world.ways.servers[0]),
                false => world.fault().and_then(|_| world.ways.new_master()),
            };
            let Some(conn) = port.and_then(|port| Conn::open(port).ok()) else {
                on_old = false;
                pause(15);
                continue;
            };
            let number = world.number();
            let mut life = Life {
                conn,
                number,
                owner: format!("o{}.{number}", self.id),
                on_old,
            };
            let mut count = 0;
            while !world.is_quiet() && self.batch(&mut life, count).is_ok() {
                count += 1;
                let crowded = on_old && world.fault().is_none();
                pause(if crowded { 10 } else { 60 });
            }
            if !world.is_over() {
                world.closed(number);
            }
            on_old = false;
        }
    }

    fn kind(&self) -> Kind {
        match self.watchdog {
            true => Kind::Watchdog,
            false => Kind::Plain,
        }
    }

    /// An error: this connection is of no use any more.
    fn batch(&self, life: &mut Life, count: u64) -> Result<(), Gone> {
        let world = self.world;
        let mut others = world.to_challenge(life.on_old, OTHERS);
        let own = (0..OWN).map(|at| format!("n{}-{count}-{at}", life.number));
        let keys: Vec<String> = others
            .iter()
            .map(|(key, _)| key.clone())
            .chain(own)
            .collect();
        let lease = match self.watchdog && count % 2 == 1 {
            true => SHORT,
            false => world.times.lease,
        };
        let watchdog = if self.watchdog { " WATCHDOG" } else { "" };
        let owner = &life.owner;
        let line = |key: &String| format!("RLOCK.ACQUIRE {key} {owner} {lease}{watchdog}");
        let mut lines: Vec<String> = keys.iter().map(line).collect();
        lines.extend(world.rule.wait_line(life.on_old));
        let call = now_us();
        let granted = life
            .conn
            .send(&lines)
            .and_then(|()| self.replies(life, &keys));
        let asked = match granted {
            Ok((grants, demoted)) => {
                let has = |key: &String| grants.iter().any(|grant| grant.key == *key);
                others.retain(|(key, _)| !has(key));
                self.begin(life, grants, call, lease).and(match demoted {
                    true => Err(Gone::Closed),
                    false => Ok(()),
                })
            }
            Err(gone) => Err(gone),
        };
        world.challenge_later(life.on_old, others);
        if let Err(gone) = asked {
            let what = format!("connection {gone:?}").to_lowercase();
            if !world.is_over() {
                world.told(self.kind(), &what, life.on_old);
            }
        }
        asked
    }

    /// What was granted, and whether the server says that it is no master.
    fn replies(&self, life: &mut Life, keys: &[String]) -> Result<(Vec<Grant>, bool), Gone> {
        let (mut grants, mut demoted) = (Vec::new(), false);
        for key in keys {
            let until = now_us() + 60_000_000;
            match life.conn.next(until)? {
                Value::Int(token) => {
                    let at = now_us();
                    self.world.granted(life.on_old, at);
                    let key = key.clone();
                    grants.push(Grant { key, token, at });
                }
                Value::Error(text) => {
                    demoted |= code(&text) == "READONLY";
                    self.world.told(self.kind(), code(&text), life.on_old);
                }
                _ => {}
            }
        }
        Ok((grants, demoted))
    }

    fn begin(
        &self,
        life: &mut Life,
        grants: Vec<Grant>,
        call: u64,
        lease: u64,
    ) -> Result<(), Gone> {
        let world = self.world;
        let mut waited = None;
        if world.rule.wait > 0 {
            let reply = life.conn.next(now_us() + 60_000_000)?;
            let least = i64::from(world.rule.replicas(life.on_old));
            if !matches!(reply, Value::Int(count) if count >= least) {
                return self.give_up(life, &grants);
            }
            waited = Some(now_us());
        }
        let hold = |grant: Grant| Hold {
            key: grant.key,
            owner: life.owner.clone(),
            kind: self.kind(),
            on_old: life.on_old,
            bound: self.watchdog.then_some(life.number),
            from: waited.unwrap_or(grant.at),
            to: (call + lease * 1000).saturating_sub(ROUNDING),
            token: grant.token,
        };
        world.begun(grants.into_iter().map(hold).collect());
        Ok(())
    }

    fn give_up(&self, life: &mut Life, grants: &[Grant]) -> Result<(), Gone> {
        self.world.notes().not_begun += grants.len() as u64;
        let line = |grant: &Grant| format!("RLOCK.RELEASE {} {}", grant.key, life.owner);
        let lines: Vec<String> = grants.iter().map(line).collect();
        life.conn.send(&lines)?;
        for _ in &lines {
            life.conn.next(now_us() + 60_000_000)?;
        }
        Ok(())
    }
}
