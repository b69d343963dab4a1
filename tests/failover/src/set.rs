//! A master, two replicas and three sentinels. Replicas and sentinels reach the master
//! by wires; clients reach it themselves.

use std::io::{self, Error};
use std::path::Path;

use crate::clock::within;
use crate::conn::{self, ask};
use crate::resp::Value;
use crate::rule::Rule;
use crate::server::{role, words, Server};
use crate::wire::Wire;

const LONG: u64 = 60_000;

pub struct Set {
    pub servers: Vec<Server>,
    pub sentinels: Vec<Server>,
    /// To the master: of each replica, and of the sentinels.
    wires: Vec<Wire>,
}

impl Set {
    /// What the master writes reaches the replicas `delay` and `3 * delay` ms later.
    /// Sentinels, if there are any, bear with so many ms of silence.
    pub fn start(dir: &Path, rule: Rule, delay: u64, sentinels: Option<u64>) -> io::Result<Self> {
        let options = rule.options();
        let master = Server::start(&dir.join("server-0"), &options)?;
        let mut set = Self {
            servers: vec![master],
            sentinels: Vec::new(),
            wires: Vec::new(),
        };
        for (number, times) in [(1, 1), (2, 3)] {
            let wire = Wire::to(set.master().port, times * delay * 1000)?;
            let mut options = options.clone();
            options.extend(words(&format!("--replicaof 127.0.0.1 {}", wire.port)));
            let replica = Server::start(&dir.join(format!("server-{number}")), &options)?;
            set.servers.push(replica);
            set.wires.push(wire);
        }
        set.wires.push(Wire::to(set.master().port, 0)?);
        let attached = || {
            let info = ask(set.master().port, "INFO replication");
            let text = info.as_ref().ok().and_then(Value::text).unwrap_or_default();
            text.matches("state=online").count() == 2
        };
        require(within(LONG, attached), "replicas")?;
        if let Some(down_after) = sentinels {
            set.watch(dir, down_after)?;
        }
        Ok(set)
    }

    fn watch(&mut self, dir: &Path, down_after: u64) -> io::Result<()> {
        for number in 0..3 {
            let lines = [
                format!("sentinel monitor m 127.0.0.1 {} 2", self.wires[2].port),
                format!("sentinel down-after-milliseconds m {down_after}"),
                "sentinel failover-timeout m 60000".to_owned(),
            ];
            let dir = dir.join(format!("sentinel-{number}"));
            self.sentinels.push(Server::sentinel(&dir, &lines)?);
        }
        let knows = |sentinel: &Server| {
            let reply = ask(sentinel.port, "SENTINEL MASTER m").ok();
            let field = |name: &str| reply.as_ref()?.get(name)?.text()?.parse::<u32>().ok();
            field("num-slaves") == Some(2) && field("num-other-sentinels") == Some(2)
        };
        let all = || self.sentinels.iter().all(knows);
        require(within(LONG, all), "sentinels that know each other")
    }

    pub fn master(&self) -> &Server {
        &self.servers[0]
    }

    pub fn cut(&self) {
        self.wires.iter().for_each(Wire::cut);
    }

    pub fn heal(&self) {
        self.wires.iter().for_each(Wire::heal);
    }

    pub fn ways(&self) -> Ways {
        let ports = |servers: &[Server]| servers.iter().map(|server| server.port).collect();
        Ways {
            servers: ports(&self.servers),
            sentinels: ports(&self.sentinels),
            alias: self.wires[2].port,
        }
    }
}

/// How a client finds the master.
#[derive(Clone)]
pub struct Ways {
    pub servers: Vec<u16>,
    sentinels: Vec<u16>,
    /// What the sentinels call the first master.
    alias: u16,
}

impl Ways {
    /// The port of what says that it is the master: asked of a sentinel, or where there
    /// is none of the replicas.
    pub fn master(&self) -> Option<u16> {
        let port = match self.sentinels.is_empty() {
            true => self.servers[1..]
                .iter()
                .copied()
                .find(|port| role(*port) == "master")
                .unwrap_or(self.servers[0]),
            false => self.by_sentinel()?,
        };
        (role(port) == "master").then_some(port)
    }

    fn by_sentinel(&self) -> Option<u16> {
        let at = fastrand::usize(..self.sentinels.len());
        let line = "SENTINEL get-master-addr-by-name m";
        let reply = conn::ask(self.sentinels[at], line).ok()?;
        let port = reply.array().get(1)?.text()?.parse().ok()?;
        Some(match port == self.alias {
            true => self.servers[0],
            false => port,
        })
    }

    /// Another one than the first.
    pub fn new_master(&self) -> Option<u16> {
        self.master().filter(|port| *port != self.servers[0])
    }
}

fn require(true_in_time: bool, what: &str) -> io::Result<()> {
    match true_in_time {
        true => Ok(()),
        false => Err(Error::other(format!("no {what}"))),
    }
}
