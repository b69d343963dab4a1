//! Which node of a cluster has which slot.
//!
//! It is read when it is not known yet, when a node says that a slot has moved, and when a
//! node cannot be reached.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult, Value, cmd};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::clock::{self, Time};
use crate::error::Error;
use crate::request::Request;
use crate::slots::{SLOTS, slot};

use super::actor::Actor;
use super::entry::Phase;
use super::node::{NOWHERE, Node};
use super::opening;

/// Between two readings: a slot that moves needs its time, and so does a failover.
const PAUSE: Duration = Duration::from_millis(100);

type Address = (String, u16);
/// From slot to slot, both of it, the node.
type Range = (u16, u16, Address);

pub(super) struct Cluster {
    seeds: Vec<Client>,
    by_slot: Vec<usize>,
    /// By the node's number.
    addresses: Vec<Address>,
    reading: Option<JoinHandle<RedisResult<Vec<Range>>>>,
    read_at: Option<Time>,
    read_last: Option<Time>,
    pub last_error: String,
}

impl Cluster {
    pub fn new(seeds: Vec<Client>) -> Self {
        Self {
            seeds,
            by_slot: vec![NOWHERE; usize::from(SLOTS)],
            addresses: Vec::new(),
            reading: None,
            read_at: None,
            read_last: None,
            last_error: "no node of the cluster was asked yet".into(),
        }
    }

    pub fn wake(&self) -> Option<Time> {
        self.read_at.filter(|_| self.reading.is_none())
    }

    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<RedisResult<Vec<Range>>> {
        let Some(reading) = &mut self.reading else {
            return Poll::Pending;
        };
        let read = std::task::ready!(Pin::new(reading).poll(context));
        self.reading = None;
        Poll::Ready(read.unwrap_or_else(|error| {
            Err((redis::ErrorKind::Io, "reading slots", error.to_string()).into())
        }))
    }

    fn node_of(&self, request: &Request) -> usize {
        let key = request.keys.first().map_or("", String::as_str);
        self.by_slot[usize::from(slot(key))]
    }

    pub fn serves(&self, node: usize, slot: u16) -> bool {
        self.by_slot[usize::from(slot)] == node
    }
}

impl Actor {
    pub fn node_of(&self, request: &Request) -> usize {
        self.cluster
            .as_ref()
            .map_or(0, |slots| slots.node_of(request))
    }

    /// Soon, and what has no node, or one that cannot be reached, goes where it belongs then.
    pub fn read_slots(&mut self) {
        if let Some(slots) = &mut self.cluster
            && slots.read_at.is_none()
        {
            let last = slots.read_last.map_or(Time::ZERO, |last| last + PAUSE);
            slots.read_at = Some(last.max(clock::now()));
        }
    }

    pub fn read_slots_if_due(&mut self, now: Time) {
        let Some(slots) = &mut self.cluster else {
            return;
        };
        if slots.reading.is_some() || slots.read_at.is_none_or(|at| at > now) {
            return;
        }
        slots.read_at = None;
        slots.read_last = Some(now);
        let links = self.nodes.iter().zip(&slots.addresses);
        let links = links.filter_map(|(node, (host, _))| {
            let connection = node.link.as_ref()?.connection();
            Some((connection, host.clone()))
        });
        let nodes = self.nodes.iter().map(|node| node.client.clone());
        let clients = nodes.chain(slots.seeds.iter().cloned()).collect();
        let patience = self.timeout.min(Duration::from_secs(1));
        let read = read(links.collect(), clients, patience);
        slots.reading = Some(self.runtime.spawn(read));
    }

    pub fn slots_read(&mut self, read: RedisResult<Vec<Range>>) {
        match read {
            Ok(ranges) => self.serve(ranges),
            Err(error) => {
                let error = Error::from_redis(&error);
                self.slots_unknown(&error);
            }
        }
        self.settle();
    }

    fn serve(&mut self, ranges: Vec<Range>) {
        let Some(slots) = &mut self.cluster else {
            return;
        };
        slots.by_slot.fill(NOWHERE);
        slots.last_error = "no node serves the slot".into();
        for (first, last, address) in ranges {
            let known = slots.addresses.iter().position(|known| *known == address);
            let node = match known {
                Some(node) => node,
                None => match slots.seeds.first().map(|seed| at(seed, &address)) {
                    Some(Ok(client)) => {
                        slots.addresses.push(address);
                        self.nodes
                            .push(Node::new(client, self.me.clone(), self.timeout));
                        self.nodes.len() - 1
                    }
                    _ => continue,
                },
            };
            let last = last.min(SLOTS - 1);
            if first <= last {
                slots.by_slot[usize::from(first)..=usize::from(last)].fill(node);
            }
        }
    }

    fn slots_unknown(&mut self, error: &Error) {
        let Some(slots) = &mut self.cluster else {
            return;
        };
        slots.last_error = error.to_string();
        if error.is_for_good() {
            self.fail_asked(NOWHERE, error);
        }
    }

    /// Gives everything to the node that has its slot, but for what a live connection goes on
    /// with: that one's node says when it cannot.
    fn settle(&mut self) {
        let Some(slots) = &self.cluster else { return };
        let nodes = &self.nodes;
        let stays = |node: usize| nodes.get(node).is_some_and(|node| node.link.is_some());
        let mut astray = false;
        let (mut asked, mut held) = (Vec::new(), Vec::new());
        for (&id, entry) in &mut self.entries {
            let node = slots.node_of(&entry.request);
            match &entry.phase {
                Phase::Asked(now) if entry.tag == 0 && !stays(entry.node) => {
                    asked.push((now.since, id));
                    entry.node = node;
                    astray |= node == NOWHERE;
                }
                // Renewed and released there from now on.
                Phase::Held(now)
                    if now.state.deadline().is_some()
                        && node != NOWHERE
                        && (node != entry.node || entry.tag == 0) =>
                {
                    self.by_tag.remove(&entry.tag);
                    (entry.node, entry.tag, entry.regains) = (node, 0, false);
                    held.push(id);
                }
                _ => {}
            }
        }
        for pending in self.pending.values_mut() {
            if !pending.sent && !stays(pending.node) {
                pending.node = slots.node_of(&pending.request);
                astray |= pending.node == NOWHERE;
            }
        }
        if astray {
            self.read_slots();
        }
        asked.sort_unstable();
        asked.iter().for_each(|&(_, id)| self.stand_again(id));
        self.send_all_pending();
        held.into_iter().for_each(|id| self.regain(id));
        asked.into_iter().for_each(|(_, id)| self.ask_again(id));
    }
}

/// By whoever answers first, of the connections that there are and then of those to be made.
async fn read(
    links: Vec<(MultiplexedConnection, String)>,
    clients: Vec<Client>,
    patience: Duration,
) -> RedisResult<Vec<Range>> {
    for (connection, host) in links {
        if let Ok(Ok(ranges)) = timeout(patience, ask(connection, &host)).await
            && !ranges.is_empty()
        {
            return Ok(ranges);
        }
    }
    let mut why = (redis::ErrorKind::Io, "there are no nodes").into();
    for client in clients {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(patience))
            .set_response_timeout(Some(patience));
        let address = client.get_connection_info().addr().clone();
        let host = match address {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
            _ => continue,
        };
        let opened = opening::open(&client, config);
        let asked = async { ask(opened.await?, &host).await };
        match timeout(patience * 2, asked).await {
            Ok(Ok(ranges)) if !ranges.is_empty() => return Ok(ranges),
            Ok(Err(error)) => why = error,
            _ => {}
        }
    }
    Err(why)
}

/// `host`: of the node that is asked, which may not know its own.
async fn ask(mut connection: MultiplexedConnection, host: &str) -> RedisResult<Vec<Range>> {
    let reply: Value = cmd("CLUSTER")
        .arg("SLOTS")
        .query_async(&mut connection)
        .await?;
    let Value::Array(ranges) = reply else {
        return Ok(Vec::new());
    };
    let range = |range: &Value| {
        let Value::Array(range) = range else {
            return None;
        };
        let [
            Value::Int(first),
            Value::Int(last),
            Value::Array(master),
            ..,
        ] = &range[..]
        else {
            return None;
        };
        let (name, Some(Value::Int(port))) = (master.first()?, master.get(1)) else {
            return None;
        };
        let name = match name {
            Value::BulkString(name) => String::from_utf8_lossy(name).into_owned(),
            Value::SimpleString(name) => name.clone(),
            _ => String::new(),
        };
        let name = match name.as_str() {
            "" | "?" => host.into(),
            _ => name,
        };
        let number = |n: &i64| u16::try_from(*n).ok();
        Some((number(first)?, number(last)?, (name, number(port)?)))
    };
    Ok(ranges.iter().filter_map(range).collect())
}

/// As the seed, but for the address.
fn at(seed: &Client, (host, port): &Address) -> RedisResult<Client> {
    let info = seed.get_connection_info().clone();
    let mut address = info.addr().clone();
    match &mut address {
        ConnectionAddr::Tcp(name, number)
        | ConnectionAddr::TcpTls {
            host: name,
            port: number,
            ..
        } => (*name, *number) = (host.clone(), *port),
        _ => {}
    }
    Client::open(info.set_addr(address))
}
