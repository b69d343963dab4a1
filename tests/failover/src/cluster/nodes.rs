//! Three masters with a replica each.

use std::collections::HashMap;
use std::io::{self, Error};
use std::path::Path;

use crate::clock::within;
use crate::conn::ask;
use crate::resp::Value;
use crate::server::{words, Server};
use crate::wire::Wire;

pub const SLOTS: u16 = 16_384;

pub struct Nodes {
    /// Masters, and then their replicas in that order.
    pub servers: Vec<Server>,
    pub ids: Vec<String>,
    /// To each of them; none where nothing is delayed.
    wires: Vec<Wire>,
}

/// How clients reach the nodes, and what the nodes call each other.
#[derive(Clone)]
pub struct Ports {
    pub own: Vec<u16>,
    announced: Vec<u16>,
}

impl Ports {
    /// Clients go past the wires.
    pub fn own_of(&self, port: u16) -> u16 {
        let at = self.announced.iter().position(|one| *one == port);
        at.map_or(port, |at| self.own[at])
    }
}

impl Nodes {
    /// What a master writes reaches its replica `delay` ms later.
    pub fn start(dir: &Path, delay: u64) -> io::Result<Self> {
        let mut servers = Vec::new();
        for number in 0..6 {
            let options = words("--cluster-enabled yes --cluster-node-timeout 2000");
            let dir = dir.join(format!("node-{number}"));
            servers.push(Server::start(&dir, &options)?);
        }
        let id = |server: &Server| must(server.port, "CLUSTER MYID");
        let ids = servers.iter().map(id).collect::<io::Result<_>>()?;
        let mut nodes = Self {
            servers,
            ids,
            wires: Vec::new(),
        };
        if delay > 0 {
            nodes.put_wires(delay)?;
        }
        nodes.join()?;
        Ok(nodes)
    }

    /// A replica goes to the port that its master announces. The bus has none of this.
    fn put_wires(&mut self, delay: u64) -> io::Result<()> {
        for server in &self.servers {
            let wire = Wire::to(server.port, delay * 1000)?;
            let bus = server.port + 10_000;
            for (name, value) in [("bus-port", bus), ("port", wire.port)] {
                let line = format!("CONFIG SET cluster-announce-{name} {value}");
                must(server.port, &line)?;
            }
            self.wires.push(wire);
        }
        Ok(())
    }

    /// The machine of a node dies: what is under way from it is lost.
    pub fn cut_power(&self, at: usize) {
        if let Some(wire) = self.wires.get(at) {
            wire.cut();
        }
        self.servers[at].signal(libc::SIGKILL);
    }

    fn join(&self) -> io::Result<()> {
        let third = SLOTS / 3;
        for (at, first) in [0, third, 2 * third].into_iter().enumerate() {
            let port = self.servers[at].port;
            let last = if at == 2 { SLOTS } else { first + third } - 1;
            must(port, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"))?;
        }
        for (at, server) in self.servers.iter().enumerate() {
            must(server.port, &format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1))?;
            must(
                self.servers[0].port,
                &format!("CLUSTER MEET 127.0.0.1 {}", server.port),
            )?;
        }
        let all = || {
            let info = |server: &Server| ask(server.port, "CLUSTER INFO").ok();
            let has = |info: Value| {
                let text = info.text().unwrap_or_default().to_owned();
                text.contains("cluster_state:ok") && text.contains("cluster_known_nodes:6")
            };
            self.servers.iter().all(|one| info(one).is_some_and(has))
        };
        if !within(60_000, all) {
            return Err(Error::other("no cluster"));
        }
        for at in 0..3 {
            let line = format!("CLUSTER REPLICATE {}", self.ids[at]);
            let port = self.servers[at + 3].port;
            if !within(30_000, || must(port, &line).is_ok()) {
                return Err(Error::other("no replica"));
            }
        }
        match within(60_000, || self.are_whole()) {
            true => Ok(()),
            false => Err(Error::other("replicas that are not attached")),
        }
    }

    /// Each master has its replica.
    fn are_whole(&self) -> bool {
        self.servers[..3].iter().all(|server| {
            let info = ask(server.port, "INFO replication").ok();
            info.is_some_and(|info| {
                info.text()
                    .is_some_and(|text| text.contains("state=online"))
            })
        })
    }

    pub fn ports(&self) -> Ports {
        let own: Vec<u16> = self.servers.iter().map(|server| server.port).collect();
        let announced = match self.wires.is_empty() {
            true => own.clone(),
            false => self.wires.iter().map(|wire| wire.port).collect(),
        };
        Ports { own, announced }
    }

    /// Which of the servers has a slot, by the word of the first that answers.
    pub fn owner(&self, slot: u16) -> Option<usize> {
        let port = *map(&self.ports()).get(usize::from(slot))?;
        self.servers.iter().position(|server| server.port == port)
    }

    /// Slots that none of the masters has, by its own word.
    pub fn without_owner(&self) -> Vec<u16> {
        let ports = self.ports();
        let masters = &ports.own[..3];
        let said = masters.iter().map(|port| said_by(*port, &ports));
        let Some(said) = said.collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let owned = |slot: u16| {
            let mut each = masters.iter().zip(&said);
            each.any(|(port, said)| said[usize::from(slot)] == *port)
        };
        (0..SLOTS).filter(|slot| !owned(*slot)).collect()
    }
}

pub fn must(port: u16, line: &str) -> io::Result<String> {
    match ask(port, line) {
        Ok(Value::Error(text)) => Err(Error::other(format!("{line}: {text}"))),
        Ok(value) => Ok(value.text().unwrap_or_default().to_owned()),
        Err(gone) => Err(Error::other(format!("{line}: {gone:?}"))),
    }
}

/// The port for each slot, by the word of whom to ask first; 0 where there is none.
pub fn map(ports: &Ports) -> Vec<u16> {
    let count = ports.own.len();
    let start = fastrand::usize(..count);
    (0..count)
        .find_map(|at| said_by(ports.own[(start + at) % count], ports))
        .unwrap_or_else(|| vec![0; usize::from(SLOTS)])
}

/// The same by the word of one.
fn said_by(port: u16, ports: &Ports) -> Option<Vec<u16>> {
    let mut all = vec![0; usize::from(SLOTS)];
    let Ok(reply @ Value::Array(_)) = ask(port, "CLUSTER SLOTS") else {
        return None;
    };
    for range in reply.array() {
        let [Value::Int(first), Value::Int(last), node, ..] = range.array() else {
            continue;
        };
        let Some(Value::Int(port)) = node.array().get(1) else {
            continue;
        };
        let own = ports.own_of(*port as u16);
        all[*first as usize..=*last as usize].fill(own);
    }
    Some(all)
}

/// The slot of a key, by the hash tag if it has one.
pub fn slot_of(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| Some(rest.split_once('}')?.0))
        .filter(|tag| !tag.is_empty());
    let mut crc: u16 = 0;
    for byte in tag.unwrap_or(key).bytes() {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = match crc & 0x8000 {
                0 => crc << 1,
                _ => (crc << 1) ^ 0x1021,
            };
        }
    }
    crc % SLOTS
}

/// Keys by their slots.
pub fn by_slot(keys: &[String]) -> HashMap<u16, Vec<String>> {
    let mut slots: HashMap<u16, Vec<String>> = HashMap::new();
    for key in keys {
        slots.entry(slot_of(key)).or_default().push(key.clone());
    }
    slots
}

#[cfg(test)]
mod tests {
    #[test]
    fn slots_are_those_of_the_servers() {
        assert_eq!(super::slot_of("123456789"), 0x31C3);
        assert_eq!(super::slot_of("a{123456789}b"), 0x31C3);
    }
}
