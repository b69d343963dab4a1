//! Clusters: one node, or two and a slot that moves from one to the other key by key.

use redis::Value;

use super::reply::{code, error};
use super::{eventually, lease_key, Ask, RawClient, Request, Server};

const CLUSTER: [&str; 6] = [
    "--cluster-enabled",
    "yes",
    "--cluster-node-timeout",
    "15000",
    "--cluster-require-full-coverage",
    "no",
];

/// One node that has all slots.
#[track_caller]
pub fn cluster() -> Server {
    cluster_with(&[])
}

/// The same with these options too.
#[track_caller]
pub fn cluster_with(options: &[&str]) -> Server {
    well(Server::start_with(&[&CLUSTER[..2], options].concat()))
}

/// The same without the module.
#[track_caller]
pub fn bare_cluster() -> Server {
    well(Server::start_bare(&CLUSTER[..2]))
}

fn well(server: Server) -> Server {
    let mut client = server.raw();
    client.ok("CLUSTER ADDSLOTSRANGE 0 16383");
    eventually("the cluster is well", || {
        client.text("CLUSTER INFO").contains("cluster_state:ok")
    });
    server
}

/// Two nodes that know each other; all slots are the first one's.
pub fn two_nodes() -> (Server, Server) {
    met(Server::start_with(&CLUSTER), Server::start_with(&CLUSTER))
}

/// The same without the module.
pub fn two_bare_nodes() -> (Server, Server) {
    met(Server::start_bare(&CLUSTER), Server::start_bare(&CLUSTER))
}

/// Two nodes on which every lock has a fencing counter.
pub fn two_nodes_with_counters() -> (Server, Server) {
    let (one, two) = two_nodes();
    for node in [&one, &two] {
        node.raw().ok("CONFIG SET rlock.fencing counter");
    }
    (one, two)
}

/// A master that has all slots, and its replica.
#[track_caller]
pub fn cluster_of(start: impl Fn(&[&str]) -> Server) -> [Server; 2] {
    // A failover that failed is not tried again for four times as long.
    let options = [&CLUSTER[..], &["--cluster-node-timeout", "3000"]].concat();
    let (master, replica) = met(start(&options), start(&options));
    let master_id = id(&mut master.raw());
    eventually("it is a replica", || {
        replica.raw().ask(&format!("CLUSTER REPLICATE {master_id}"));
        replica.info_field("replication", "role").as_deref() == Some("slave")
    });
    replica.is_in_sync();
    [master, replica]
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

/// What a node is called.
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
}

/// As a client of a cluster does, who is sent from one node to the other.
impl Ask for Move {
    #[track_caller]
    fn ask<R: Request + ?Sized>(&mut self, request: &R) -> Value {
        match self.here.ask(request) {
            error @ Value::ServerError(_) if code(&error) == "ASK" => {
                self.there.ok("ASKING");
                self.there.ask(request)
            }
            error @ Value::ServerError(_) if code(&error) == "MOVED" => self.there.ask(request),
            reply => reply,
        }
    }
}

#[track_caller]
pub fn asking(client: &mut RawClient, line: &str) -> Value {
    let mut replies = client.ask_all(&["ASKING", line]);
    assert_eq!(replies[0], Value::Okay);
    replies.remove(1)
}

/// Whether the server says that the request is to be made again.
pub fn is_try_again(reply: &Value) -> bool {
    let is = matches!(reply, Value::ServerError(_)) && code(reply) == "TRYAGAIN";
    if is {
        let line = error(reply.clone());
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
    let help = client.texts("CLUSTER HELP");
    help.iter().any(|line| line.starts_with(name))
}

/// All orders of so many things.
pub fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1).into_iter();
    let put = |order: Vec<usize>| {
        (0..count).map(move |place| {
            let mut order = order.clone();
            order.insert(place, count - 1);
            order
        })
    };
    shorter.flat_map(put).collect()
}

/// The keys of a lock that `a` reads twice and `b` once, and its counter.
pub fn keys_of(lock: &str) -> [String; 5] {
    [
        lock.to_owned(),
        lease_key(lock, "a", 1),
        lease_key(lock, "a", 2),
        lease_key(lock, "b", 1),
        format!("redisson_lock_token:{{{lock}}}"),
    ]
}
