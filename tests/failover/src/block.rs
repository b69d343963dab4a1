//! A blocked waiter, which asks again at the new master when its wait ends with an error.

use crate::clock::{now_us, pause};
use crate::conn::{Conn, Gone};
use crate::judge::{Hold, Kind, ROUNDING};
use crate::resp::Value;
use crate::world::{code, World};

pub struct Waiter<'a> {
    pub world: &'a World,
    pub key: String,
    pub owner: String,
    pub watchdog: bool,
}

impl Waiter<'_> {
    pub fn run(&self) {
        let world = self.world;
        let mut on_old = true;
        let mut holding = None;
        while !world.is_quiet() && holding.is_none() {
            let port = match on_old {
                true => Some(world.ways.servers[0]),
                false => world.ways.new_master(),
            };
            match port.and_then(|port| Conn::open(port).ok()) {
                Some(conn) => holding = self.wait(conn, on_old),
                None => pause(50),
            }
            on_old &= world.fault().is_none();
        }
        // His connection stays open for as long as he holds by it.
        let Some((mut conn, bound)) = holding else {
            return;
        };
        while !world.is_over() {
            if conn.next(now_us() + 200_000) == Err(Gone::Closed) {
                world.closed(bound);
                return;
            }
        }
    }

    /// The connection, if he holds by it.
    fn wait(&self, mut conn: Conn, on_old: bool) -> Option<(Conn, u64)> {
        let world = self.world;
        let watchdog = if self.watchdog { " WATCHDOG" } else { "" };
        let (key, owner) = (&self.key, &self.owner);
        let (lease, wait) = (world.times.lease, world.times.wait);
        let line = format!("RLOCK.ACQUIRE {key} {owner} {lease} BLOCK {wait} ONCE{watchdog}");
        let until = now_us() + (wait + world.times.grace) * 1000;
        world.waits(1);
        let reply = conn.send(&[line]).and_then(|()| loop {
            match conn.next((now_us() + 200_000).min(until)) {
                Err(Gone::Silent) if now_us() < until && !world.is_over() => {}
                other => return other,
            }
        });
        let what = match &reply {
            Ok(Value::Int(_)) => "granted",
            Ok(Value::Error(text)) => code(text),
            Ok(_) => "timeout",
            Err(Gone::Closed) => "connection closed",
            Err(Gone::Silent) if now_us() < until => "still waiting",
            Err(Gone::Silent) => "nothing",
        };
        world.waits(match reply {
            Err(Gone::Silent) => 0,
            _ => -1,
        });
        world.told(Kind::Block, what, on_old);
        let Ok(Value::Int(token)) = reply else {
            return None;
        };
        world.granted(on_old, now_us());
        let bound = world.number();
        self.begin(&mut conn, on_old, token, bound)
            .then_some((conn, bound))
    }

    /// By RENEW he learns that he has it yet, and from when his lease counts.
    fn begin(&self, conn: &mut Conn, on_old: bool, token: i64, bound: u64) -> bool {
        let world = self.world;
        let (key, owner) = (&self.key, &self.owner);
        let mut lines = vec![format!("RLOCK.RENEW {key} {owner} {}", world.times.lease)];
        lines.extend(world.rule.wait_line(on_old));
        let call = now_us();
        let mut replies = Vec::new();
        let _ = conn.send(&lines);
        for _ in &lines {
            replies.push(conn.next(now_us() + 30_000_000));
        }
        let least = i64::from(world.rule.replicas(on_old));
        let enough =
            |reply: &Result<Value, Gone>| matches!(reply, Ok(Value::Int(count)) if *count >= least);
        let enough = replies.get(1).is_none_or(enough);
        if replies[0] != Ok(Value::Int(1)) || !enough {
            world.notes().not_begun += 1;
            let _ = conn.ask_within(&format!("RLOCK.RELEASE {key} {owner} IFHELD"), 1000);
            return false;
        }
        world.begun(vec![Hold {
            key: key.clone(),
            owner: owner.clone(),
            kind: Kind::Block,
            on_old,
            bound: self.watchdog.then_some(bound),
            from: now_us(),
            to: (call + world.times.lease * 1000).saturating_sub(ROUNDING),
            token,
        }]);
        true
    }
}
