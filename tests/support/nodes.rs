//! Two nodes of a cluster, and a slot that moves from one to the other key by key.

use redis::Value;

use crate::support::ask::{text, Ask};
use crate::support::locks::{code, Say};
use crate::support::{eventually, RawClient, Server};

const CLUSTER: [&str; 6] = [
    "--cluster-enabled",
    "yes",
    "--cluster-node-timeout",
    "5000",
    "--cluster-require-full-coverage",
    "no",
];

/// Two nodes that know each other; all slots are the first one's.
pub fn two_nodes() -> (Server, Server) {
    met(Server::start_with(&CLUSTER), Server::start_with(&CLUSTER))
}

/// The same without the module.
pub fn two_bare_nodes() -> (Server, Server) {
    met(Server::start_bare(&CLUSTER), Server::start_bare(&CLUSTER))
}

fn met(one: Server, two: Server) -> (Server, Server) {
    let mut control = one.raw();
    control.ok("CLUSTER ADDSLOTSRANGE 0 16383");
    control.ok(&format!("CLUSTER MEET 127.0.0.1 {}", two.port()));
    for node in [&one, &two] {
        eventually("the nodes agree", || {
            let info = node.raw().text("CLUSTER INFO");
            info.contains("cluster_state:ok")
                && info.contains("cluster_known_nodes:2")
                && info.contains("cluster_slots_assigned:16384")
        });
    }
    (one, two)
}

pub fn id(client: &mut RawClient) -> String {
    client.text("CLUSTER MYID")
}

/// Connections to the node that a slot moves from, and to the one it moves to.
pub struct Move {
    pub here: RawClient,
    pub there: RawClient,
    slot: i64,
    ids: [String; 2],
    port: u16,
}

impl Move {
    /// The slot of this key is on its way from now on.
    #[track_caller]
    pub fn of(key: &str, from: &Server, to: &Server) -> Self {
        let mut of = Self::before(key, from, to);
        of.begin();
        of
    }

    /// The same, but it is not on its way yet.
    #[track_caller]
    pub fn before(key: &str, from: &Server, to: &Server) -> Self {
        let (mut here, mut there) = (from.raw(), to.raw());
        let slot = here.int(&format!("CLUSTER KEYSLOT {key}"));
        let ids = [id(&mut here), id(&mut there)];
        Self {
            here,
            there,
            slot,
            ids,
            port: to.port(),
        }
    }

    #[track_caller]
    pub fn begin(&mut self) {
        let (slot, [from, to]) = (self.slot, &self.ids);
        self.there
            .ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {from}"));
        self.here
            .ok(&format!("CLUSTER SETSLOT {slot} MIGRATING {to}"));
    }

    /// Moves a key over.
    #[track_caller]
    pub fn over(&mut self, key: &str) {
        let to = self.port;
        self.here
            .ok(&format!("MIGRATE 127.0.0.1 {to} {key} 0 5000"));
    }

    /// The slot has arrived.
    #[track_caller]
    pub fn arrive(&mut self) {
        let (slot, [_, to]) = (self.slot, &self.ids);
        for client in [&mut self.there, &mut self.here] {
            client.ok(&format!("CLUSTER SETSLOT {slot} NODE {to}"));
        }
    }

    /// The slot stays where it was.
    #[track_caller]
    pub fn stay(&mut self) {
        let slot = self.slot;
        for client in [&mut self.here, &mut self.there] {
            client.ok(&format!("CLUSTER SETSLOT {slot} STABLE"));
        }
    }

    /// What the node that the slot moves to says to whoever was sent there.
    #[track_caller]
    pub fn asking(&mut self, line: &str) -> Value {
        asking(&mut self.there, line)
    }

    /// Asks as a client of a cluster does, who is sent from one node to the other.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Value {
        self.call(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// The same with any words.
    #[track_caller]
    pub fn call<A: AsRef<[u8]>>(&mut self, request: &[A]) -> Value {
        match self.here.call(request) {
            error @ Value::ServerError(_) if code(&error) == "ASK" => {
                self.there.ok("ASKING");
                self.there.call(request)
            }
            error @ Value::ServerError(_) if code(&error) == "MOVED" => self.there.call(request),
            reply => reply,
        }
    }
}

#[track_caller]
pub fn asking(client: &mut RawClient, line: &str) -> Value {
    let mut replies = client.say_all(&["ASKING", line]);
    assert_eq!(replies[0], Value::Okay);
    replies.remove(1)
}

/// Whether the server says that the request is to be made again.
pub fn is_try_again(reply: &Value) -> bool {
    let is = matches!(reply, Value::ServerError(_)) && code(reply) == "TRYAGAIN";
    if is {
        let line = crate::support::ask::error_line(reply.clone());
        let expected = "TRYAGAIN Multiple keys request during rehashing of slot";
        assert_eq!(line, expected);
    }
    is
}

/// The keys that a node has in a slot.
pub fn keys_in_slot(client: &mut RawClient, slot: i64) -> Vec<String> {
    client.texts(&format!("CLUSTER GETKEYSINSLOT {slot} 1000"))
}

/// The slot of a key, by the server's rule.
pub fn slot_of(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let part = tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty());
    let crc = part.unwrap_or(key).bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    });
    crc % 16384
}

/// Whether the server has this subcommand of CLUSTER.
pub fn has_subcommand(client: &mut RawClient, name: &str) -> bool {
    let help = client.ask("CLUSTER HELP");
    let lines = crate::support::ask::list(help).into_iter().map(text);
    lines.into_iter().any(|line| line.starts_with(name))
}
