//! The history, put in order: operations with what they asked and where, by lock and
//! by owner, and when the surroundings were calm.

use std::collections::{BTreeMap, HashMap, HashSet};

use rlock_torture::history::{
    Conn, Copies, Crash, Fault, Message, Op, Out, Ping, Record, Rest, Round, Run, Sample, Stall,
    Stray,
};

use crate::answers;
use crate::clocks::{self, Clocks};
use crate::closes;
use crate::request::{Mode, Request, Verb};
use crate::strict;
use crate::told::{self, Tag, Told};

/// After a fault of a whole server it takes so long until all is as before, us.
const SETTLE: u64 = 1_500_000;
/// And after a stall of the machine.
const SHORT: u64 = 100_000;
/// A server that stood still for about a second does nothing on its own until it could
/// learn what happened meanwhile: for two beats of its cron, us.
const STOOD: u64 = 800_000;
const WAKES: u64 = 500_000;
/// A request that was lost is done or forgotten after so long, us.
const DONE: u64 = 500_000;
pub const NEVER: u64 = u64::MAX;
/// Of the cluster's nodes.
const NODE_TIMEOUT_MS: u64 = 5_000;

/// A lock, as clients name it.
pub type Lock = (u32, String);

pub struct Asked {
    pub op: Op,
    pub request: Request,
    /// With `*` told apart by connection.
    pub owner: String,
    pub server: u16,
    pub db: u32,
    /// By when it was answered, or else had surely been done or forgotten.
    pub done: u64,
    /// What came on a connection whose replies do not fit its requests: nobody
    /// knows which belongs to which, so that all of them count as lost.
    pub spoiled: Option<Out>,
    /// When the reply QUEUED came. Its `op` has then what the message said,
    /// and when that came, as if it were the reply.
    pub queued: Option<u64>,
    /// It is one of several with the same name, which were sent again: nobody can tell which
    /// of them a message is for.
    pub again: bool,
}

impl Asked {
    pub fn lost(&self) -> bool {
        matches!(self.op.out, Out::Lost | Out::Unanswered)
    }

    pub fn token(&self) -> Option<i64> {
        match self.op.out {
            Out::Int(token) if self.request.acquires() => Some(token),
            _ => None,
        }
    }

    pub fn error(&self, code: &str) -> bool {
        matches!(&self.op.out, Out::Error(text) if text.split(' ').next() == Some(code))
    }

    pub fn mode(&self) -> Mode {
        self.request.mode
    }

    /// It waits if it cannot have the lock: in MULTI BLOCK tries once.
    pub fn waits(&self) -> Option<u64> {
        self.request.block.filter(|_| !self.op.multi)
    }
}

#[derive(Default)]
pub struct Past {
    pub round: Round,
    /// By the time of their call.
    pub ops: Vec<Asked>,
    pub conns: HashMap<u32, Conn>,
    pub faults: Vec<Fault>,
    pub stalls: Vec<Stall>,
    pub pings: Vec<Ping>,
    pub runs: Vec<Run>,
    pub strays: Vec<Stray>,
    pub samples: Vec<Sample>,
    pub rests: Vec<Rest>,
    pub copies: Vec<Copies>,
    pub crashes: Vec<Crash>,
    pub clocks: Clocks,
    /// Under these settings nothing is excused.
    pub strict: Option<&'static str>,
    /// What sessions were told, in order; by connection and tag.
    pub told: BTreeMap<Tag, Vec<(u64, Told)>>,
    /// What was told that is no message of rlock.
    pub babble: Vec<Message>,
    /// When connections ceased to listen: by request, or by their server.
    pub deaf: HashMap<u32, Vec<(u64, u64)>>,
    /// Indices of operations, by lock and then by owner.
    pub locks: BTreeMap<Lock, BTreeMap<String, Vec<usize>>>,
    pub by_conn: HashMap<u32, Vec<usize>>,
    /// CANCELs, by database and owner; and LIMITs, by lock.
    pub cancels: HashMap<(u32, String), Vec<usize>>,
    pub limits: BTreeMap<Lock, Vec<usize>>,
    /// When time was no measure, in order and apart.
    rough: Vec<(u64, u64)>,
    deaths: HashMap<u32, (u64, u64)>,
}

impl Past {
    pub fn new(records: Vec<Record>) -> Self {
        let mut past = Self::default();
        let mut ops = Vec::new();
        let mut messages = Vec::new();
        for record in records {
            match record {
                Record::Round(round) => past.round = round,
                Record::Op(op) => ops.push(op),
                Record::Conn(conn) => {
                    past.conns.insert(conn.conn, conn);
                }
                Record::Fault(fault) => past.faults.push(fault),
                Record::Run(run) => past.runs.push(run),
                Record::Stall(stall) => past.stalls.push(stall),
                Record::Ping(ping) => past.pings.push(ping),
                Record::Stray(stray) => past.strays.push(stray),
                Record::Sample(sample) => past.samples.push(sample),
                Record::Rest(rest) => past.rests.push(rest),
                Record::Copies(copies) => past.copies.push(copies),
                Record::Crash(crash) => past.crashes.push(crash),
                Record::Message(message) => messages.push(message),
            }
        }
        past.faults.sort_by_key(|fault| fault.begin);
        past.rough = past.rough_times();
        past.strict = strict::settings(&past.round);
        past.clocks = Clocks::new(&past.faults);
        ops.sort_by_key(|op| op.call);
        let strays = past.strays.iter().map(|stray| stray.conn);
        let wrong = ops.iter().filter(|op| answers::misfits(op));
        let spoiled: HashSet<u32> = wrong.map(|op| op.conn).chain(strays).collect();
        let ops = ops.into_iter();
        past.ops = ops.map(|op| past.asked(op, &spoiled)).collect();
        told::resolve(&mut past, messages);
        past.index();
        past.deaths = closes::deaths(&past);
        past
    }

    fn asked(&self, op: Op, spoiled: &HashSet<u32>) -> Asked {
        let mut op = op;
        let is_spoiled = spoiled.contains(&op.conn) && op.out != Out::Unanswered;
        let told = is_spoiled.then(|| std::mem::replace(&mut op.out, Out::Lost));
        op.reply = op.reply.filter(|_| !is_spoiled);
        let request = Request::parse(&op.args);
        let conn = self.conns.get(&op.conn);
        let owner = match (request.owner.as_str(), conn) {
            ("*", Some(conn)) => conn.owner.clone().unwrap_or_default(),
            (owner, _) => owner.to_owned(),
        };
        let done = match (op.reply, &op.out, conn) {
            (Some(reply), ..) => reply,
            (None, Out::Lost, Some(conn)) => self.settled(conn.closed),
            _ => NEVER,
        };
        Asked {
            owner,
            server: conn.map_or(0, |conn| conn.server),
            db: conn.map_or(0, |conn| conn.db),
            done,
            spoiled: told,
            queued: None,
            again: false,
            request,
            op,
        }
    }

    fn index(&mut self) {
        for (at, asked) in self.ops.iter().enumerate() {
            let request = &asked.request;
            self.by_conn.entry(asked.op.conn).or_default().push(at);
            match request.verb {
                Verb::Cancel => {
                    let whose = (asked.db, asked.owner.clone());
                    self.cancels.entry(whose).or_default().push(at);
                }
                Verb::Limit => {
                    let lock = (asked.db, request.keys[0].clone());
                    self.limits.entry(lock).or_default().push(at);
                }
                _ => (),
            }
            let touches = request.acquires() || request.releases() || request.renews();
            if !touches || request.is_wrong() {
                continue;
            }
            for key in &request.keys {
                let lock = self.locks.entry((asked.db, key.clone())).or_default();
                lock.entry(asked.owner.clone()).or_default().push(at);
            }
        }
    }

    fn rough_times(&self) -> Vec<(u64, u64)> {
        let cluster = self.round.topology == "cluster";
        // Nodes take each other for dead by it.
        let jumps = |fault: &Fault| {
            cluster && clocks::steps(&fault.kind) && fault.ms >= NODE_TIMEOUT_MS / 2
        };
        let of_faults = self.faults.iter();
        let of_faults = of_faults.filter(|fault| disturbs(&fault.kind) || jumps(fault));
        let mut all: Vec<(u64, u64)> = of_faults.map(|fault| (fault.begin, fault.end)).collect();
        for (_, end) in &mut all {
            *end += SETTLE;
        }
        all.extend(
            self.stalls
                .iter()
                .map(|stall| (stall.from, stall.to + SHORT)),
        );
        all.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::new();
        for (from, to) in all {
            match apart.last_mut() {
                Some((_, last)) if from <= *last => *last = to.max(*last),
                _ => apart.push((from, to)),
            }
        }
        apart
    }

    /// Nothing hindered the servers or the clients in all this time, nor shortly
    /// before.
    pub fn calm(&self, from: u64, to: u64) -> bool {
        let first = self
            .rough
            .partition_point(|(_, end)| end.saturating_add(SETTLE) < from);
        self.rough.get(first).is_none_or(|(begin, _)| *begin > to)
    }

    /// When the first thing after this moment began that hinders a server.
    pub fn next_rough(&self, after: u64) -> u64 {
        let at = self.rough.partition_point(|(_, end)| *end < after);
        self.rough
            .get(at)
            .map_or(NEVER, |(begin, _)| (*begin).max(after))
    }

    /// By when what was under way at this moment has been done.
    pub fn settled(&self, at: u64) -> u64 {
        let mut until = at.saturating_add(DONE);
        for (begin, end) in &self.rough {
            if *begin < until && *end + DONE > until {
                until = end + DONE;
            }
        }
        until
    }

    /// Whether bonds between holds and connections were cut meanwhile by something
    /// that is no close: the holds run out with their leases then, and may be found
    /// late.
    pub fn bonds_cut(&self, from: u64, to: u64) -> bool {
        let mut all = self.faults.iter();
        all.any(|fault| cuts_bonds(&fault.kind) && fault.begin <= to && fault.end >= from)
    }

    /// Whether a server was kept from what it does on its own, though it answered.
    pub fn put_off(&self, from: u64, to: u64) -> bool {
        let kinds = ["pause", "min-replicas", "memory", "detach", "disk-full"];
        let keeps = |kind: &str| kinds.contains(&kind) || cuts_bonds(kind);
        let faults = self.faults.iter().filter(|fault| keeps(&fault.kind));
        let faults = faults.map(|fault| (fault.begin, fault.end + SHORT));
        let stood = |stall: &&Stall| {
            let long = stall.to.saturating_sub(stall.from) >= STOOD;
            long && stall.who.starts_with("server")
        };
        let stalls = self.stalls.iter().filter(stood);
        let stalls = stalls.map(|stall| (stall.from, stall.to + WAKES));
        let mut all = faults.chain(stalls);
        all.any(|(begin, end)| begin <= to && end >= from)
    }

    /// What does not come to rest by itself is freed by FORCE.
    pub fn at_rest(&self, at: u64) -> bool {
        let mut rests = self.faults.iter().filter(|fault| fault.kind == "rest");
        rests.any(|rest| (rest.begin..=rest.end).contains(&at))
    }

    /// Whether what was done in this time may have been forgotten, for another master came.
    pub fn lossy(&self, from: u64, to: u64) -> bool {
        let mut all = self.faults.iter();
        all.any(|fault| {
            let other = fault.kind == "demote" || switches(&fault.kind);
            other && fault.end >= from && fault.begin <= to.saturating_add(DONE)
        })
    }

    /// From when on somebody may hold this lock who never asked for it by this name.
    pub fn holds_brought(&self, lock: &Lock) -> u64 {
        let mut faults = self.faults.iter();
        let brings = faults.find(|fault| {
            let renamed = fault.kind == "rename" && fault.keys.contains(&lock.1);
            renamed || fault.kind == "swapdb"
        });
        brings.map_or(NEVER, |fault| fault.begin)
    }

    /// From when on a connection may have been closed, and by when it surely was, as
    /// the server saw it.
    pub fn death(&self, conn: u32) -> (u64, u64) {
        self.deaths.get(&conn).copied().unwrap_or((0, NEVER))
    }
}

/// Faults after which time is no measure for a while.
fn disturbs(kind: &str) -> bool {
    let kinds = [
        "disk-exit",
        "disk-full",
        "restart",
        "restart-empty",
        "stop",
        "stop-client",
        "pause",
        "reload",
        "rewrite",
        "min-replicas",
        "detach",
        "demote",
        "failover",
        "swapdb",
    ];
    kinds.contains(&kind) || moves_a_slot(kind) || switches(kind)
}

/// Faults after which connections and holds are no longer bound to each other.
pub fn cuts_bonds(kind: &str) -> bool {
    let kinds = [
        "disk-exit",
        "restart",
        "restart-empty",
        "demote",
        "failover",
        "swapdb",
        "reload",
    ];
    kinds.contains(&kind) || moves_a_slot(kind) || switches(kind)
}

pub fn moves_a_slot(kind: &str) -> bool {
    ["move-slot", "move-slot-at-once"].contains(&kind)
}

/// Faults after which a server is another process.
pub fn starts_anew(kind: &str) -> bool {
    ["restart", "restart-empty", "disk-exit"].contains(&kind)
}

/// A master is replaced by Sentinel, and may not know it for a while.
pub fn switches(kind: &str) -> bool {
    kind.starts_with("sentinel-")
}

/// Another server is the master after it, with all keys.
pub fn changes_master(kind: &str) -> bool {
    ["failover", "demote"].contains(&kind) || switches(kind)
}

/// Faults that end all holds, as the documentation says.
pub fn ends_all(kind: &str) -> bool {
    ["restart-empty", "demote", "flushall", "swapdb"].contains(&kind)
}

/// Faults that end, or may end, the hold of a key: from then on, or so long after.
pub fn ends_key(kind: &str) -> bool {
    ["del", "force", "rename", "pexpire"].contains(&kind)
}
