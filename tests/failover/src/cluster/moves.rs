//! What is done to the cluster.

use std::io::{self, Error};
use std::process::{Command, Stdio};

use super::load::{name, Load, KEYS};
use super::nodes::{by_slot, must, Nodes};
use crate::clock::{now_us, pause, within};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// redis-cli --cluster reshard
    Reshard,
    /// Slot by slot, in every order of the steps.
    Hand,
    /// Valkey's CLUSTER MIGRATESLOTS.
    Atomic,
    Failover,
    Takeover,
    /// The process dies; what it had written arrives.
    Kill,
    /// The machine dies: what is under way is lost too.
    Power,
}

pub const MOVES: [(Move, &str); 7] = [
    (Move::Reshard, "redis-cli reshard"),
    (Move::Hand, "slot by slot by hand"),
    (Move::Atomic, "CLUSTER MIGRATESLOTS"),
    (Move::Failover, "CLUSTER FAILOVER"),
    (Move::Takeover, "CLUSTER FAILOVER TAKEOVER"),
    (Move::Kill, "kill -9 of a master"),
    (Move::Power, "power cut of a master"),
];

/// For a move that is made of many, us.
const LONG: u64 = 20_000_000;

impl Move {
    pub fn make(self, nodes: &Nodes, load: &Load) -> io::Result<()> {
        match self {
            Self::Reshard => reshard(nodes, load),
            Self::Hand => by_hand(nodes, load),
            Self::Atomic => atomic(nodes),
            Self::Failover => roles(nodes, "CLUSTER FAILOVER"),
            Self::Takeover => roles(nodes, "CLUSTER FAILOVER TAKEOVER"),
            Self::Kill => {
                nodes.servers[0].signal(libc::SIGKILL);
                taken_over(nodes)
            }
            Self::Power => {
                nodes.cut_power(0);
                taken_over(nodes)
            }
        }
    }

    pub fn replaces_masters(self) -> bool {
        self == Self::Failover || self.forgets()
    }

    /// What the new master did not receive is held by two.
    pub fn forgets(self) -> bool {
        matches!(self, Self::Takeover | Self::Kill | Self::Power)
    }
}

fn require(done: bool, what: &str) -> io::Result<()> {
    match done {
        true => Ok(()),
        false => Err(Error::other(what.to_owned())),
    }
}

fn taken_over(nodes: &Nodes) -> io::Result<()> {
    let done = || nodes.servers[3].role() == "master";
    require(within(40_000, done), "nobody took over")
}

fn reshard(nodes: &Nodes, load: &Load) -> io::Result<()> {
    let end = now_us() + LONG;
    let mut last = String::new();
    for (from, to) in [(0, 1), (1, 2), (2, 0)].into_iter().cycle().take(12) {
        if now_us() > end {
            break;
        }
        let output = Command::new("redis-cli")
            .args(["--cluster", "reshard"])
            .arg(format!("127.0.0.1:{}", nodes.servers[0].port))
            .args([
                "--cluster-from",
                &nodes.ids[from],
                "--cluster-to",
                &nodes.ids[to],
            ])
            .args(["--cluster-slots", "600", "--cluster-yes"])
            .stdin(Stdio::null())
            .output()?;
        // Refused while the nodes have not told each other of the last one.
        if output.status.success() {
            load.count("reshards");
            continue;
        }
        last = String::from_utf8_lossy(&output.stdout).into_owned();
        last.push_str(&String::from_utf8_lossy(&output.stderr));
        pause(500);
    }
    let done = load.notes().counts.get("reshards").copied().unwrap_or(0);
    let lines: Vec<&str> = last.lines().rev().take(4).collect();
    require(
        last.is_empty(),
        &format!("{done} reshards; then: {lines:?}"),
    )
}

/// Who hears first that the slot moves, and who first that it has moved.
fn by_hand(nodes: &Nodes, load: &Load) -> io::Result<()> {
    let keys: Vec<String> = (0..KEYS).map(name).collect();
    let mut slots: Vec<(u16, Vec<String>)> = by_slot(&keys).into_iter().collect();
    slots.sort_by_key(|(_, keys)| keys[0][1..].parse().unwrap_or(usize::MAX));
    let end = now_us() + LONG;
    for (number, (slot, _)) in slots.iter().enumerate() {
        if now_us() > end {
            break;
        }
        let Some(from) = nodes.owner(*slot).filter(|owner| *owner < 3) else {
            continue;
        };
        let to = (from + 1 + number % 2) % 3;
        one_slot(nodes, *slot, (from, to), number)?;
        load.count("slots moved");
    }
    give_again(nodes, load)
}

/// Slots of which each node says that another has them, for good: nodes that are given slots
/// faster than they tell each other of it come to that. It is mended as by `redis-cli --cluster
/// fix`, and counted.
fn give_again(nodes: &Nodes, load: &Load) -> io::Result<()> {
    pause(1_000);
    for slot in nodes.without_owner() {
        load.count("slots that no node had");
        let line = format!("CLUSTER SETSLOT {slot} NODE {}", nodes.ids[0]);
        must(nodes.servers[0].port, &line)?;
    }
    Ok(())
}

fn one_slot(nodes: &Nodes, slot: u16, (from, to): (usize, usize), order: usize) -> io::Result<()> {
    let port = |at: usize| nodes.servers[at].port;
    let (old, new) = (port(from), port(to));
    let importing = format!("CLUSTER SETSLOT {slot} IMPORTING {}", nodes.ids[from]);
    let migrating = format!("CLUSTER SETSLOT {slot} MIGRATING {}", nodes.ids[to]);
    let mut begin = [(new, importing), (old, migrating)];
    if order & 1 == 1 {
        begin.reverse();
    }
    for (at, line) in &begin {
        must(*at, line)?;
        pause(2);
    }
    // While it is used new keys come and go: until there is none.
    let end = now_us() + 5_000_000;
    loop {
        let reply = crate::conn::ask(old, &format!("CLUSTER GETKEYSINSLOT {slot} 100"));
        let reply = reply.map_err(|gone| Error::other(format!("{gone:?}")))?;
        let mut keys: Vec<&str> = reply.array().iter().filter_map(|key| key.text()).collect();
        if keys.is_empty() || now_us() > end {
            break;
        }
        // Together, or one by one from either end.
        if order & 4 == 4 {
            keys.reverse();
        }
        let each = if order & 8 == 8 { keys.len() } else { 1 };
        for keys in keys.chunks(each) {
            let line = format!("MIGRATE 127.0.0.1 {new}  0 5000 KEYS {}", keys.join(" "));
            must(old, &line)?;
        }
    }
    let mut ends = [new, old];
    if order & 2 == 2 {
        ends.reverse();
    }
    for at in ends {
        let done = || {
            must(
                at,
                &format!("CLUSTER SETSLOT {slot} NODE {}", nodes.ids[to]),
            )
        };
        // The old one refuses it while it has keys of the slot, and hears from the new one then.
        if let Err(error) = done().or_else(|_| {
            pause(5);
            done()
        }) {
            require(at == old, &error.to_string())?;
        }
    }
    Ok(())
}

fn atomic(nodes: &Nodes) -> io::Result<()> {
    for round in 0..12_u16 {
        let from = usize::from(round % 3);
        let first = from as u16 * 5461 + round / 3 * 600;
        let to = (from + 1) % 3;
        let (last, id) = (first + 599, &nodes.ids[to]);
        let line = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {first} {last} NODE {id}");
        must(nodes.servers[from].port, &line)?;
        let arrived = || nodes.owner(first) == Some(to) && nodes.owner(last) == Some(to);
        require(within(20_000, arrived), "slots did not arrive")?;
    }
    Ok(())
}

/// Each replica takes its master's place, and that one takes it back.
fn roles(nodes: &Nodes, line: &str) -> io::Result<()> {
    for (old, new) in [(0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)] {
        let (old, new) = (&nodes.servers[old], &nodes.servers[new]);
        let done = || {
            // Refused for as long as it is not attached, say.
            let _ = must(new.port, line);
            within(2_000, || new.role() == "master" && old.role() == "slave")
        };
        require(within(20_000, done), "roles that do not change")?;
        pause(700);
    }
    Ok(())
}
