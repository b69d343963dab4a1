//! The history, put in order: operations with what they asked and where, by lock and
//! by owner, and when the surroundings were calm.

use std::collections::{BTreeMap, HashMap, HashSet};

use rlock_torture::history::{
    Conn, Copies, Crash, Fault, Message, Op, Out, Ping, Record, Rest, Round, Run, Sample, Stall,
    Stray,
};

use crate::answers;
use crate::clocks::Clocks;
use crate::closes;
use crate::request::{Mode, Request, Verb};
use crate::rough::{Rough, DONE};
use crate::strict;
use crate::told::{self, Tag, Told};

/// After a stall of the machine it takes so long until all is as before, us.
const SHORT: u64 = 100_000;
/// A server that stood still for about a second does nothing on its own until it could
/// learn what happened meanwhile: for two beats of its cron, us.
const STOOD: u64 = 800_000;
const WAKES: u64 = 500_000;
pub const NEVER: u64 = u64::MAX;

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
    /// HEARTBEATs, by connection.
    pub heartbeats: HashMap<u32, Vec<usize>>,
    /// CANCELs, by database and owner; and LIMITs, by lock.
    pub cancels: HashMap<(u32, String), Vec<usize>>,
    pub limits: BTreeMap<Lock, Vec<usize>>,
    /// When time was no measure; and for the servers and one client process.
    rough: Rough,
    rough_of: HashMap<u32, Rough>,
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
        past.rough = past.rough_times(None);
        let processes: HashSet<u32> = past.conns.keys().map(|conn| process(*conn)).collect();
        let of = |process| (process, past.rough_times(Some(process)));
        past.rough_of = processes.into_iter().map(of).collect();
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
                Verb::Heartbeat => {
                    self.heartbeats.entry(asked.op.conn).or_default().push(at);
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

    /// The one request by which an owner can have got what these are about, if it is one.
    pub fn only_acquisition(&self, ops: &[usize]) -> Option<usize> {
        let mut all = ops.iter().filter(|at| self.ops[**at].request.acquires());
        all.next().copied().filter(|_| all.next().is_none())
    }

    fn rough_times(&self, of: Option<u32>) -> Rough {
        let its = |who: &str| concerns(who, of);
        let stops = |fault: &&Fault| fault.kind != "stop-client" || its(&fault.note);
        let stalls = self.stalls.iter().filter(|stall| its(&stall.who));
        let cluster = self.round.topology == "cluster";
        Rough::new(self.faults.iter().filter(stops), stalls, cluster)
    }

    /// Nothing hindered the servers or the clients in all this time, nor shortly
    /// before.
    pub fn calm(&self, from: u64, to: u64) -> bool {
        self.rough.calm(from, to)
    }

    /// The same of the servers and the client process that has this connection.
    pub fn calm_for(&self, conn: u32, from: u64, to: u64) -> bool {
        let of = self.rough_of.get(&process(conn));
        of.unwrap_or(&self.rough).calm(from, to)
    }

    /// When the first thing after this moment began that hinders a server.
    pub fn next_rough(&self, after: u64) -> u64 {
        self.rough.next(after)
    }

    /// By when what was under way at this moment has been done.
    pub fn settled(&self, at: u64) -> u64 {
        self.rough.settled(at)
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

/// As its orchestrator and itself number them.
fn process(conn: u32) -> u32 {
    conn / 1_000_000
}

/// Whether what stood still is a server, or that client process; none: whichever it is.
fn concerns(who: &str, process: Option<u32>) -> bool {
    let client = who.strip_prefix("client ");
    let of = process.map(|number| number.to_string());
    client.is_none() || of.is_none() || client == of.as_deref()
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
