//! The history, put in order.

use std::collections::HashMap;

use rlock_torture::saw::{Ask, Fault, Left, Life, Record, Round, Stall, Told, Wire};

use crate::hold::{Hold, Mode, NEVER};
use crate::silent;
use crate::way;

/// By then a connection that the server has closed is closed for its client too, us.
const CLOSED: u64 = 10_000_000;

#[derive(Default)]
pub struct Past {
    pub round: Round,
    pub asks: Vec<Ask>,
    pub wires: Vec<Wire>,
    pub faults: Vec<Fault>,
    pub lives: Vec<Life>,
    pub stalls: Vec<Stall>,
    pub left: Vec<Left>,
    /// In the order of their grants.
    pub holds: Vec<Hold>,
}

/// From when to when somebody surely held, and whose hold it is.
#[derive(Clone, Copy)]
pub struct Claim {
    pub hold: usize,
    pub from: u64,
    pub to: u64,
    pub mode: Mode,
}

impl Past {
    pub fn new(records: Vec<Record>) -> Self {
        let mut past = Self::default();
        let mut told: Vec<Told> = Vec::new();
        for record in records {
            match record {
                Record::Round(round) => past.round = round,
                Record::Ask(ask) => past.asks.extend(way::parts(ask)),
                Record::Told(one) => told.push(one),
                Record::Wire(wire) => past.wires.push(wire),
                Record::Fault(fault) => past.faults.push(fault),
                Record::Life(life) => past.lives.push(life),
                Record::Stall(stall) => past.stalls.push(stall),
                Record::Left(left) => past.left.push(left),
            }
        }
        past.asks.sort_by_key(|ask| ask.call);
        past.faults.sort_by_key(|fault| fault.begin);
        let mut of_hold: HashMap<(&str, u32), Vec<&Ask>> = HashMap::new();
        for ask in past.asks.iter().filter(|ask| ask.what != "acquire") {
            let whose = (ask.hold.as_str(), ask.life);
            of_hold.entry(whose).or_default().push(ask);
        }
        for ask in past.asks.iter().filter(|ask| ask.what == "acquire") {
            let Some(mut hold) = Hold::granted(ask) else {
                continue;
            };
            if let Some(asks) = of_hold.get(&(ask.hold.as_str(), ask.life)) {
                hold.follow(asks);
            }
            past.holds.push(hold);
        }
        past.holds.sort_by_key(|hold| hold.start);
        way::tell(&mut past.holds, told);
        past
    }

    /// It asks the server without a client of ours.
    pub fn is_raw(&self, driver: usize) -> bool {
        driver == 0 || self.round.raw.contains(&driver)
    }

    /// For how long a driver's program may be silent, us; none: as long as a round lasts.
    pub fn patience(&self, driver: usize) -> Option<u64> {
        let mut opens = self.asks.iter().filter(|ask| ask.what == "open");
        let open = opens.find(|ask| ask.driver == driver)?;
        open.words["patience"].as_u64().map(|ms| ms * 1000)
    }

    /// From when on the hold may be lost though nobody could tell its client in time.
    pub fn excused(&self, hold: &Hold) -> u64 {
        let thrown = self.thrown_out(hold);
        // Without the module every hold goes on until its lease is over, whatever happens to its
        // connection.
        if !hold.watchdog || self.round.plain {
            return thrown;
        }
        let closed = self.closed(hold, hold.since).map(|at| self.began(at));
        let mut kills = self.faults.iter().filter(|one| one.kind == "kill-server");
        let killed = kills.find(|one| one.end >= hold.since);
        let killed = killed.map_or(NEVER, |fault| fault.begin);
        let silent = silent::since(self, hold);
        thrown.min(closed.unwrap_or(NEVER)).min(killed).min(silent)
    }

    pub fn thrown_out(&self, hold: &Hold) -> u64 {
        let mut all = self.faults.iter();
        let its = all.find(|fault| {
            let key = fault.key.as_ref();
            key.is_some_and(|key| hold.keys.contains(key)) && fault.end >= hold.since
        });
        its.map_or(NEVER, |fault| fault.begin)
    }

    /// When the first of its client's connections was closed, not before `after`.
    pub fn closed(&self, hold: &Hold, after: u64) -> Option<u64> {
        let its = self.wires.iter().filter(|wire| wire.driver == hold.driver);
        let closed = its.filter_map(|wire| wire.closed);
        closed.filter(|at| *at >= after).min()
    }

    /// The server may have closed it before that was seen.
    fn began(&self, closed: u64) -> u64 {
        let mut all = self.faults.iter().filter(|fault| {
            let closes = ["client-kill", "kill-server"].contains(&fault.kind.as_str());
            closes && fault.begin <= closed && fault.begin + CLOSED >= closed
        });
        all.next().map_or(closed, |fault| fault.begin)
    }

    /// When it was surely held, by the client's own word. Of one that was taken without a client:
    /// until its release was asked for, or its lease could have ended.
    pub fn claim(&self, at: usize) -> Option<Claim> {
        let hold = &self.holds[at];
        let said = match self.is_raw(hold.driver) {
            true => hold.released.min(hold.lease_from),
            false => hold.said(),
        };
        let to = said.min(self.excused(hold));
        (to > hold.start).then_some(Claim {
            hold: at,
            from: hold.start,
            to,
            mode: hold.mode,
        })
    }

    /// Of each lock, in the order of their begin.
    pub fn claims(&self) -> HashMap<&str, Vec<Claim>> {
        let mut all: HashMap<&str, Vec<Claim>> = HashMap::new();
        for at in 0..self.holds.len() {
            let Some(claim) = self.claim(at) else {
                continue;
            };
            for key in &self.holds[at].keys {
                all.entry(key).or_default().push(claim);
            }
        }
        all
    }

    pub fn killed(&self, driver: usize, life: u32) -> bool {
        let mut lives = self.lives.iter();
        lives.any(|one| one.driver == driver && one.life == life && one.killed)
    }

    /// When nothing that the server said came to that driver.
    pub fn silences(&self, driver: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let its = self.faults.iter().filter(move |fault| {
            let of_server = ["stop-server", "kill-server"];
            let of_wire = ["hold-back", "freeze", "refuse"];
            let kind = fault.kind.as_str();
            of_server.contains(&kind) || (of_wire.contains(&kind) && fault.driver == Some(driver))
        });
        its.map(|fault| (fault.begin, fault.end))
    }

    /// When that driver may not have been heard by the server: it, its wire or the machine stood
    /// still.
    pub fn unheard(&self, driver: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let its = self.faults.iter().filter(move |fault| {
            let kinds = ["stop-driver", "hold-back", "freeze", "refuse", "orphan"];
            kinds.contains(&fault.kind.as_str()) && fault.driver == Some(driver)
        });
        let stalls = self.stalls.iter().map(|stall| (stall.from, stall.to));
        its.map(|fault| (fault.begin, fault.end)).chain(stalls)
    }

    /// How much of this time the machine stood still, us.
    pub fn stalled(&self, from: u64, to: u64) -> u64 {
        let stalls = self.stalls.iter();
        let parts = stalls.map(|stall| stall.to.min(to).saturating_sub(stall.from.max(from)));
        parts.sum()
    }

    /// How many of its client's connections were closed in this time.
    pub fn closes(&self, driver: usize, from: u64, to: u64) -> u64 {
        let its = self.wires.iter().filter(|wire| wire.driver == driver);
        let closed = its.filter_map(|wire| wire.closed);
        closed.filter(|at| (from..=to).contains(at)).count() as u64
    }

    /// How much of this time something hindered that driver, its wire or the server, us.
    pub fn hindered(&self, driver: usize, from: u64, to: u64) -> u64 {
        let its = self.faults.iter().filter(|fault| {
            let lasting = ["hold-back", "freeze", "refuse", "orphan"];
            let of_server = ["stop-server", "kill-server", "kill-driver"];
            let kind = fault.kind.as_str();
            let stops = kind == "stop-driver" || lasting.contains(&kind);
            of_server.contains(&kind) || (stops && fault.driver == Some(driver))
        });
        let faults = its.map(|fault| (fault.begin, fault.end));
        let stalls = self.stalls.iter().map(|stall| (stall.from, stall.to));
        let parts = faults.chain(stalls);
        parts
            .map(|(begin, end)| end.min(to).saturating_sub(begin.max(from)))
            .sum()
    }
}
