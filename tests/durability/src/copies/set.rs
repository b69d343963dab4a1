//! Three servers, of which one is the master for the clients. Each reaches those that it
//! replicates by their wires.

use std::io;
use std::path::{Path, PathBuf};

use crate::conn::ask;
use crate::node;
use crate::resp::Value;
use crate::server::Server;
use crate::wire::Wire;

pub struct Node {
    server: Option<Server>,
    pub wire: Wire,
    pub dir: PathBuf,
    /// Whom it replicates.
    pub of: Option<usize>,
    pub aof: bool,
}

/// Of all servers together, over all their lives.
#[derive(Clone, Copy, Default)]
pub struct Syncs {
    pub full: u64,
    pub partial: u64,
    pub refused: u64,
}

pub struct Set {
    pub nodes: Vec<Node>,
    pub master: usize,
    /// Full syncs go by a connection of their own, and there is no AOF: on Valkey 9.1 that of
    /// a replica lacks what was streamed while it loaded.
    pub two_channels: bool,
    /// Of lives that are over.
    syncs: Syncs,
    pub faults: Vec<String>,
}

/// Two in three forget at once what they have sent.
const BACKLOGS: [&str; 3] = ["16kb", "16kb", "1mb"];

/// Valkey alone knows it.
const TWO_CHANNELS: &str = "CONFIG SET dual-channel-replication-enabled yes";

impl Node {
    fn start(dir: &Path, aof: bool, rng: &mut fastrand::Rng) -> io::Result<Self> {
        let yes = if aof { "yes" } else { "no" };
        let backlog = BACKLOGS[rng.usize(..BACKLOGS.len())];
        let options = format!("--appendonly {yes} --repl-backlog-size {backlog}");
        let server = node::start(dir, &options)?;
        Ok(Self {
            wire: Wire::to(server.port, 0)?,
            server: Some(server),
            dir: dir.to_owned(),
            of: None,
            aof,
        })
    }

    pub fn server(&self) -> &Server {
        // It is gone only while it is started again.
        self.server.as_ref().expect("a server")
    }

    pub fn port(&self) -> u16 {
        self.server().port
    }

    pub fn say(&self, line: &str) -> Option<Value> {
        ask(self.port(), line).ok()
    }

    fn syncs(&self) -> Syncs {
        let number = |field| node::number(self.port(), "stats", field);
        Syncs {
            full: number("sync_full"),
            partial: number("sync_partial_ok"),
            refused: number("sync_partial_err"),
        }
    }
}

impl Syncs {
    pub fn add(&mut self, other: Self) {
        self.full += other.full;
        self.partial += other.partial;
        self.refused += other.refused;
    }
}

impl Set {
    pub fn start(dir: &Path, rng: &mut fastrand::Rng) -> io::Result<Self> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut two = rng.bool();
        for number in 0..3 {
            let dir = dir.join(format!("server-{number}"));
            // The master begins without anybody who listens.
            let aof = number > 0 && !two && rng.bool();
            let node = Node::start(&dir, aof, rng)?;
            two = two && matches!(node.say(TWO_CHANNELS), Some(Value::Simple(_)));
            nodes.push(node);
        }
        Ok(Self {
            nodes,
            master: 0,
            two_channels: two,
            syncs: Syncs::default(),
            faults: Vec::new(),
        })
    }

    pub fn master(&self) -> &Node {
        &self.nodes[self.master]
    }

    /// Whether what the master writes comes to this one, perhaps by others.
    pub fn follows(&self, mut number: usize) -> bool {
        for _ in 0..self.nodes.len() {
            match self.nodes[number].of {
                Some(of) => number = of,
                None => return number == self.master,
            }
        }
        false
    }

    pub fn attach(&mut self, number: usize, of: usize) {
        self.nodes[number].of = Some(of);
        let line = format!("REPLICAOF 127.0.0.1 {}", self.nodes[of].wire.port);
        self.nodes[number].say(&line);
    }

    pub fn detach(&mut self, number: usize) {
        self.nodes[number].of = None;
        self.nodes[number].say("REPLICAOF NO ONE");
    }

    /// kill -9, and a start in the same folder. Others find it at its new port.
    pub fn restart(&mut self, number: usize, rng: &mut fastrand::Rng) -> io::Result<()> {
        self.end_life(number);
        let node = &mut self.nodes[number];
        node.server = None;
        let of = node.of;
        let mut again = Node::start(&node.dir, node.aof, rng)?;
        again.of = of;
        if self.two_channels {
            again.say(TWO_CHANNELS);
        }
        self.nodes[number] = again;
        if let Some(of) = of {
            self.attach(number, of);
        }
        let below = |at: &usize| self.nodes[*at].of == Some(number);
        let below: Vec<usize> = (0..self.nodes.len()).filter(below).collect();
        below.into_iter().for_each(|at| self.attach(at, number));
        Ok(())
    }

    fn end_life(&mut self, number: usize) {
        let node = &self.nodes[number];
        self.syncs.add(node.syncs());
        let faults = node::faults(node.server());
        self.faults.extend(faults);
    }

    /// All syncs, and faults in logs.
    pub fn end(mut self) -> (Syncs, Vec<String>) {
        for number in 0..self.nodes.len() {
            self.end_life(number);
        }
        (self.syncs, std::mem::take(&mut self.faults))
    }
}
