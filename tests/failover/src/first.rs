//! The one who holds what is waited for. A third of it he releases in the moment of the
//! fault, of a third the lease ends in that moment, of a third later.

use crate::clock::{now_us, pause, pause_until};
use crate::conn::{Conn, Gone};
use crate::judge::{Hold, Kind, ROUNDING};
use crate::resp::Value;
use crate::world::World;

const OWNER: &str = "first";
/// Releases in one write, and how far apart these are, us.
const AT_ONCE: usize = 4;
const APART: u64 = 2_000;

pub struct First {
    conn: Conn,
    keys: Vec<String>,
    holds: Vec<Hold>,
}

impl First {
    pub fn take(world: &World, keys: Vec<String>) -> Result<Self, Gone> {
        let mut first = Self {
            conn: Conn::open(world.ways.servers[0])?,
            keys,
            holds: Vec::new(),
        };
        let line = |key: &String| format!("RLOCK.ACQUIRE {key} {OWNER} 60000");
        let lines: Vec<String> = first.keys.iter().map(line).collect();
        first.say(&lines)?;
        Ok(first)
    }

    fn say(&mut self, lines: &[String]) -> Result<(), Gone> {
        self.conn.send(lines)?;
        for _ in lines {
            let reply = self.conn.next(now_us() + 30_000_000)?;
            // Anything else: it was replaced before its time.
            if !matches!(reply, Value::Int(_)) {
                return Err(Gone::Closed);
            }
        }
        Ok(())
    }

    /// Sets the leases by the moment of the fault.
    pub fn plan(&mut self, moment: u64) -> Result<(), Gone> {
        let call = now_us();
        let left = moment.saturating_sub(call) / 1000;
        let all = self.keys.len() as u64;
        let lease = |at: u64| match at % 3 {
            0 => left + 8_000,
            1 => (left + 400 * at / all).saturating_sub(100).max(1),
            _ => left + 1000 + 7000 * at / all,
        };
        let leases: Vec<u64> = (0..all).map(lease).collect();
        let renewal = |(key, lease)| format!("RLOCK.RENEW {key} {OWNER} {lease}");
        let lines: Vec<String> = self.keys.iter().zip(&leases).map(renewal).collect();
        self.say(&lines)?;
        let from = now_us();
        let hold = |(key, lease): (&String, &u64)| Hold {
            key: key.clone(),
            owner: OWNER.to_owned(),
            kind: Kind::Plain,
            on_old: true,
            bound: None,
            from,
            to: (call + lease * 1000).saturating_sub(ROUNDING),
            token: 0,
        };
        self.holds = self.keys.iter().zip(&leases).map(hold).collect();
        Ok(())
    }

    /// Releases around the moment, and once more at the new master, for nobody knows
    /// which of them arrived.
    pub fn run(mut self, world: &World, moment: u64) {
        let mine: Vec<usize> = (0..self.keys.len()).step_by(3).collect();
        let groups: Vec<&[usize]> = mine.chunks(AT_ONCE).collect();
        let start = moment - APART * groups.len() as u64 / 2;
        for (number, group) in groups.iter().enumerate() {
            pause_until(start + APART * number as u64);
            let sent = now_us();
            let mut lines = Vec::new();
            for at in *group {
                self.holds[*at].to = self.holds[*at].to.min(sent);
                lines.push(format!("RLOCK.RELEASE {} {OWNER}", self.keys[*at]));
            }
            let _ = self.conn.send(&lines);
        }
        world.notes().holds.append(&mut self.holds);
        while !world.is_over() {
            let conn = world.ways.new_master().map(Conn::open);
            if let Some(Ok(mut conn)) = conn {
                let line = |at: &usize| format!("RLOCK.RELEASE {} {OWNER} IFHELD", self.keys[*at]);
                let lines: Vec<String> = mine.iter().map(line).collect();
                let _ = conn.send(&lines);
                for _ in &lines {
                    let _ = conn.next(now_us() + 5_000_000);
                }
                return;
            }
            pause(20);
        }
    }
}
