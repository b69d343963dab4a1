//! Three sentinels that watch a master and two replicas, by wires that can be cut: all but
//! the clients reach a server by its wire, which is what it announces.

use std::fs;
use std::io::{self, Error};
use std::path::Path;
use std::time::Duration;

use crate::link::Link;
use crate::servers::{Program, Server};
use crate::wire::Wire;
use crate::world::eventually;

/// They bear with so much silence, ms: a busy machine is not to be taken for a dead one.
const DOWN_AFTER: u64 = 2_000;
const LONG: Duration = Duration::from_secs(60);

pub struct Watch {
    sentinels: Vec<Program>,
    /// To each server.
    pub wires: Vec<Wire>,
}

impl Watch {
    /// Makes the first of the servers master of the others, and has them watched.
    pub fn start(dir: &Path, servers: &mut [Server]) -> io::Result<Self> {
        let mut wires = Vec::new();
        for server in servers.iter_mut() {
            let wire = Wire::to(server.port, 0)?;
            server.options.extend([
                "--replica-announce-ip".to_owned(),
                "127.0.0.1".to_owned(),
                "--replica-announce-port".to_owned(),
                wire.port.to_string(),
            ]);
            let mut link = server.link()?;
            link.must("CONFIG SET replica-announce-ip 127.0.0.1")?;
            link.must(&format!("CONFIG SET replica-announce-port {}", wire.port))?;
            wires.push(wire);
        }
        let mut watch = Self {
            sentinels: Vec::new(),
            wires,
        };
        for replica in &servers[1..] {
            replica.link()?.must(&watch.replicaof(0))?;
        }
        for replica in &servers[1..] {
            in_step(replica)?;
        }
        watch.begin(dir)?;
        Ok(watch)
    }

    fn begin(&mut self, dir: &Path) -> io::Result<()> {
        for number in 0..3 {
            let dir = dir.join(format!("sentinel-{number}"));
            fs::create_dir_all(&dir)?;
            let lines = format!(
                "sentinel monitor m 127.0.0.1 {} 2\n\
                 sentinel down-after-milliseconds m {DOWN_AFTER}\n\
                 sentinel failover-timeout m 10000\n\
                 sentinel parallel-syncs m 2\n",
                self.wires[0].port
            );
            self.sentinels.push(Program::sentinel(&dir, &lines)?);
        }
        eventually("the sentinels know each other", LONG, || {
            let mut all = self.sentinels.iter();
            Ok(all.all(|one| knows_all(one.port).unwrap_or(false)))
        })
    }

    /// What makes a server a replica of this one.
    pub fn replicaof(&self, master: usize) -> String {
        format!("REPLICAOF 127.0.0.1 {}", self.wires[master].port)
    }

    /// Which server a sentinel takes for the master.
    pub fn master(&self) -> io::Result<usize> {
        let at = fastrand::usize(..self.sentinels.len());
        let mut link = Link::open(self.sentinels[at].port)?;
        let reply = link.must("SENTINEL get-master-addr-by-name m")?;
        let port = reply.array().get(1).and_then(|port| port.text());
        let port: Option<u16> = port.and_then(|port| port.parse().ok());
        let found = self.wires.iter().position(|wire| Some(wire.port) == port);
        found.ok_or_else(|| Error::other("a sentinel names another master"))
    }

    /// Has a sentinel replace the master, at once; false if it will not.
    pub fn failover(&self) -> io::Result<bool> {
        let mut link = Link::open(self.sentinels[0].port)?;
        Ok(link.must("SENTINEL FAILOVER m").is_ok())
    }
}

fn knows_all(port: u16) -> io::Result<bool> {
    let mut link = Link::open(port)?;
    let reply = link.must("SENTINEL MASTER m")?;
    let field = |name: &str| reply.get(name)?.text()?.parse::<u32>().ok();
    Ok(field("num-slaves") == Some(2) && field("num-other-sentinels") == Some(2))
}

pub fn role(server: &Server) -> io::Result<String> {
    let role = server.link()?.info_field("replication", "role")?;
    Ok(role.unwrap_or_default())
}

/// Waits until a replica has caught up.
pub fn in_step(replica: &Server) -> io::Result<()> {
    eventually("a replica is in step", LONG, || {
        let mut link = replica.link()?;
        let status = link.info_field("replication", "master_link_status")?;
        Ok(status.as_deref() == Some("up"))
    })
}
