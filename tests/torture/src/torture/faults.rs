//! Doing what the plan says, and recording when it began and when it was over.

use std::io::{self, Error};
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::history::{Fault, Record};

use crate::link::Link;
use crate::plan::Act;
use crate::resp::Value;
use crate::rest;
use crate::world::{attach, eventually, named, World};

fn ms(ms: u64) {
    sleep(Duration::from_millis(ms));
}

impl World {
    pub fn act(&mut self, act: &Act) -> io::Result<()> {
        match act {
            Act::Rest => {
                rest::rest(self)?;
                self.clients
                    .iter_mut()
                    .try_for_each(|client| client.tell("go"))
            }
            Act::Kill(down) => self.kill(*down),
            Act::Stop(time) => self.stop(*time),
            Act::StopClient(process, time) => self.stop_client(*process, *time),
            Act::KillClients(count) => self.kill_clients(*count),
            Act::Unblock(count, error) => self.unblock(*count, *error),
            Act::Pause(time, all) => self.pause(*time, *all),
            Act::Force(key) => self.on_key("force", &format!("RLOCK.FORCE {key}"), &[key], 0),
            Act::Del(key) => self.on_key("del", &format!("DEL {key}"), &[key], 0),
            Act::Pexpire(key, time) => {
                self.on_key("pexpire", &format!("PEXPIRE {key} {time}"), &[key], *time)
            }
            Act::Persist(key) => {
                self.on_key("persist", &format!("PERSIST {key}"), &[key], 0)?;
                ms(300);
                self.on_key("del", &format!("DEL {key}"), &[key], 0)
            }
            Act::Rename(from, to) => {
                let line = format!("RENAME {from} {to}");
                self.on_key("rename", &line, &[from, to], 0)
            }
            Act::FlushAll => self.everywhere("flushall", "FLUSHALL"),
            Act::SwapDb => self.everywhere("swapdb", "SWAPDB 0 1"),
            Act::Reload => self.everywhere("reload", "DEBUG RELOAD"),
            Act::Rewrite => self.everywhere("rewrite", "BGREWRITEAOF"),
            Act::Memory(time) => self.setting("memory", ("maxmemory", "1mb", "0"), *time),
            Act::MinReplicas(time) => {
                self.setting("min-replicas", ("min-replicas-to-write", "5", "0"), *time)
            }
            Act::Detach(time) => self.detach(*time),
            Act::Demote(gap) => self.demote(*gap),
            Act::Failover => self.failover(),
            Act::MoveSlot(tag, gap, seed) => self.move_slot(tag, *gap, *seed),
            Act::Switch(how, gap, patience) => self.switch(*how, *gap, *patience),
            Act::Full(at, time, everysec) => self.fill_disk(*at, *time, *everysec),
            Act::Clock(at, off, time) => self.step_clock(*at, *off, *time),
        }
    }

    pub fn fault(&self, kind: &str) -> Fault {
        Fault {
            kind: kind.to_owned(),
            server: self.master().port,
            begin: now_us(),
            end: 0,
            keys: Vec::new(),
            db: 0,
            ms: 0,
            note: String::new(),
        }
    }

    pub fn done(&mut self, mut fault: Fault) -> io::Result<()> {
        fault.end = now_us();
        self.record(fault)
    }

    fn kill(&mut self, down: u64) -> io::Result<()> {
        // A server that was a replica has no whole AOF until it has rewritten it.
        if self.switched || self.crashed()? {
            return Ok(());
        }
        let kind = if self.plan.aof {
            "restart"
        } else {
            "restart-empty"
        };
        let fault = self.fault(kind);
        let at = self.master;
        let run = self.servers[at].end();
        self.to.write(&Record::Run(run))?;
        ms(down);
        if !self.plan.aof {
            // DEBUG RELOAD leaves one behind.
            let _ = std::fs::remove_file(self.servers[at].dir.join("dump.rdb"));
        }
        self.servers[at].launch()?;
        self.done(fault)
    }

    fn stop(&mut self, time: u64) -> io::Result<()> {
        for at in self.writable().into_iter().take(1) {
            let mut fault = self.fault("stop");
            fault.ms = time;
            self.servers[at].signal(libc::SIGSTOP);
            ms(time);
            self.servers[at].signal(libc::SIGCONT);
            self.done(fault)?;
        }
        Ok(())
    }

    fn stop_client(&mut self, process: u32, time: u64) -> io::Result<()> {
        let mut fault = self.fault("stop-client");
        fault.note = format!("client {}", process + 1);
        let client = &self.clients[process as usize % self.clients.len()];
        client.signal(libc::SIGSTOP);
        ms(time);
        client.signal(libc::SIGCONT);
        self.done(fault)
    }

    /// The ids of clients that are ours to harm: which are blocked, if so asked.
    fn some_clients(link: &mut Link, blocked: bool, count: usize) -> io::Result<Vec<String>> {
        let list = link.must("CLIENT LIST")?;
        let text = list.text().unwrap_or_default();
        let field = |line: &str, name: &str| {
            let mut words = line.split(' ');
            words.find_map(|word| word.strip_prefix(name).map(str::to_owned))
        };
        let mut ids = Vec::new();
        for line in text.lines() {
            let flags = field(line, "flags=").unwrap_or_default();
            let name = field(line, "name=").unwrap_or_default();
            let ours = name.is_empty() && !flags.contains(['S', 'M']);
            if ours && (!blocked || flags.contains('b')) {
                ids.extend(field(line, "id="));
            }
        }
        // The list is in the order of their arrival; any of them will do.
        fastrand::shuffle(&mut ids);
        ids.truncate(count);
        Ok(ids)
    }

    fn kill_clients(&mut self, count: usize) -> io::Result<()> {
        let mut link = self.link()?;
        let ids = Self::some_clients(&mut link, false, count)?;
        let mut fault = self.fault("client-kill");
        for id in &ids {
            link.say(&format!("CLIENT KILL ID {id}"))?;
        }
        fault.note = ids.join(",");
        self.done(fault)
    }

    fn unblock(&mut self, count: usize, error: bool) -> io::Result<()> {
        let mut link = self.link()?;
        let ids = Self::some_clients(&mut link, true, count)?;
        let mut fault = self.fault("unblock");
        let how = if error { "ERROR" } else { "TIMEOUT" };
        for id in &ids {
            link.say(&format!("CLIENT UNBLOCK {id} {how}"))?;
        }
        fault.note = ids.join(",");
        self.done(fault)
    }

    fn pause(&mut self, time: u64, all: bool) -> io::Result<()> {
        let mut link = self.link()?;
        let mut fault = self.fault("pause");
        fault.ms = time;
        let how = if all { "ALL" } else { "WRITE" };
        link.must(&format!("CLIENT PAUSE {time} {how}"))?;
        ms(time + 5);
        self.done(fault)
    }

    /// To a key, on whichever server it is, in both databases.
    fn on_key(&mut self, kind: &str, line: &str, keys: &[&String], time: u64) -> io::Result<()> {
        for at in self.writable() {
            let mut link = named(self.servers[at].link()?)?;
            for db in 0..=u32::from(self.plan.dbs) {
                let mut fault = self.fault(kind);
                fault.server = self.servers[at].port;
                fault.keys = keys.iter().map(ToString::to_string).collect();
                fault.db = db;
                fault.ms = time;
                if db > 0 {
                    link.must(&format!("SELECT {db}"))?;
                }
                fault.begin = now_us();
                fault.note = format!("{:?}", link.say(line)?);
                self.done(fault)?;
            }
        }
        Ok(())
    }

    fn everywhere(&mut self, kind: &str, line: &str) -> io::Result<()> {
        for at in self.writable() {
            let mut fault = self.fault(kind);
            fault.server = self.servers[at].port;
            let mut link = named(self.servers[at].link()?)?;
            fault.note = format!("{:?}", link.say(line)?);
            self.done(fault)?;
        }
        Ok(())
    }

    /// A setting is bad for a while.
    fn setting(&mut self, kind: &str, what: (&str, &str, &str), time: u64) -> io::Result<()> {
        let (name, bad, good) = what;
        for at in self.writable().into_iter().take(1) {
            let fault = self.fault(kind);
            let mut link = named(self.servers[at].link()?)?;
            link.must(&format!("CONFIG SET {name} {bad}"))?;
            ms(time);
            link.must(&format!("CONFIG SET {name} {good}"))?;
            self.done(fault)?;
        }
        Ok(())
    }

    fn detach(&mut self, time: u64) -> io::Result<()> {
        let fault = self.fault("detach");
        let replica = &self.servers[1 - self.master];
        replica.link()?.must("REPLICAOF NO ONE")?;
        ms(time);
        attach(replica, self.master())?;
        self.done(fault)
    }

    fn demote(&mut self, gap: u64) -> io::Result<()> {
        let fault = self.fault("demote");
        let (old, new) = (self.master, 1 - self.master);
        self.servers[new].link()?.must("REPLICAOF NO ONE")?;
        self.tell_master(new)?;
        ms(gap);
        attach(&self.servers[old], &self.servers[new])?;
        self.done(fault)
    }

    fn failover(&mut self) -> io::Result<()> {
        // Servers behind tunnels do not find each other by the ports that they tell.
        if std::env::var_os("RLOCK_TLS_SERVER").is_some() {
            return Ok(());
        }
        let mut fault = self.fault("failover");
        let (old, new) = (self.master, 1 - self.master);
        let (mut from, mut to) = (self.link()?, named(self.servers[new].link()?)?);
        let line = format!(
            "FAILOVER TO 127.0.0.1 {} TIMEOUT 3000",
            self.servers[new].port
        );
        // Refused for as long as the replica is not attached again after an earlier fault.
        eventually("the failover begins", Duration::from_secs(20), || {
            Ok(from.must(&line).is_ok())
        })?;
        let role = |link: &mut Link| link.info_field("replication", "role");
        eventually("the failover is over", Duration::from_secs(10), || {
            let state = from.info_field("replication", "master_failover_state")?;
            Ok(state.as_deref() == Some("no-failover"))
        })?;
        match role(&mut to)?.as_deref() {
            Some("master") => {
                self.tell_master(new)?;
                let mut link = self.servers[old].link()?;
                eventually("the old master is in step", Duration::from_secs(20), || {
                    let status = link.info_field("replication", "master_link_status")?;
                    Ok(status.as_deref() == Some("up"))
                })?;
            }
            _ => fault.note = "it did not come about".to_owned(),
        }
        self.done(fault)
    }

    fn tell_master(&mut self, at: usize) -> io::Result<()> {
        self.master = at;
        self.switched = true;
        let line = format!("master {}", self.servers[at].port);
        self.clients
            .iter_mut()
            .try_for_each(|client| client.tell(&line))
    }

    /// Moves the slot of a tag to the other node as redis-cli does, key by key, in an
    /// order that the seed draws.
    fn move_slot(&mut self, tag: &str, gap: u64, seed: u64) -> io::Result<()> {
        let mut rng = Rng::with_seed(seed);
        let mut links = Vec::new();
        for server in &self.servers {
            links.push(named(server.link()?)?);
        }
        let slot = match links[0].must(&format!("CLUSTER KEYSLOT {tag}"))? {
            Value::Int(slot) => slot,
            other => return Err(Error::other(format!("no slot: {other:?}"))),
        };
        let ids = [id(&mut links[0])?, id(&mut links[1])?];
        let mine = |id: &str, link: &mut Link| -> io::Result<bool> { owns(link, id, slot) };
        let from = usize::from(!mine(&ids[0], &mut links[0])?);
        let to = 1 - from;
        let mut fault = self.fault("move-slot");
        fault.keys = vec![tag.to_owned()];
        let port = self.servers[to].port;
        if rng.bool() && moved_at_once(&mut links, (from, to), slot, &ids)? {
            fault.kind = "move-slot-at-once".to_owned();
            return self.done(fault);
        }
        links[to].must(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[from]))?;
        links[from].must(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[to]))?;
        loop {
            let keys = links[from].must(&format!("CLUSTER GETKEYSINSLOT {slot} 1000"))?;
            let mut keys: Vec<&str> = keys.array().iter().filter_map(Value::text).collect();
            if keys.is_empty() {
                break;
            }
            rng.shuffle(&mut keys);
            for key in keys {
                if let Value::Error(error) = migrate(&mut links[from], port, key)? {
                    fault.note = format!("MIGRATE {key}: {error}");
                    links[from].say(&format!("MIGRATE 127.0.0.1 {port} {key} 0 5000 REPLACE"))?;
                }
                ms(gap);
            }
        }
        links[to].must(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[to]))?;
        links[from].must(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[to]))?;
        self.done(fault)
    }
}

/// Moves a key. The other node may think that the cluster is down, for a while after one of
/// them stood still.
fn migrate(link: &mut Link, port: u16, key: &str) -> io::Result<Value> {
    let line = format!("MIGRATE 127.0.0.1 {port} {key} 0 5000");
    let mut reply = link.say(&line)?;
    let _ = eventually("the cluster is up", Duration::from_secs(10), || {
        let down = matches!(&reply, Value::Error(error) if error.contains("CLUSTERDOWN"));
        if down {
            reply = link.say(&line)?;
        }
        Ok(!down)
    });
    Ok(reply)
}

/// Moves a slot by the server's own command, where it has one (Valkey 9); whether it
/// did.
fn moved_at_once(
    links: &mut [Link],
    (from, to): (usize, usize),
    slot: i64,
    ids: &[String; 2],
) -> io::Result<bool> {
    let line = format!(
        "CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {}",
        ids[to]
    );
    if matches!(links[from].say(&line)?, Value::Error(_)) {
        return Ok(false);
    }
    let moved = eventually("the slot has moved", Duration::from_secs(10), || {
        Ok(owns(&mut links[to], &ids[to], slot)? && owns(&mut links[from], &ids[to], slot)?)
    });
    Ok(moved.is_ok())
}

fn id(link: &mut Link) -> io::Result<String> {
    let reply = link.must("CLUSTER MYID")?;
    let id = reply.text().ok_or_else(|| Error::other("no id"))?;
    Ok(id.to_owned())
}

/// Whether the node of that id has the slot.
fn owns(link: &mut Link, id: &str, slot: i64) -> io::Result<bool> {
    let reply = link.must("CLUSTER NODES")?;
    let nodes = reply.text().unwrap_or_default();
    let line = nodes
        .lines()
        .find(|line| line.starts_with(id))
        .unwrap_or_default();
    Ok(line.split(' ').skip(8).any(|range| {
        let mut ends = range.split('-').filter_map(|end| end.parse::<i64>().ok());
        match (ends.next(), ends.next()) {
            (Some(first), last) => (first..=last.unwrap_or(first)).contains(&slot),
            _ => false,
        }
    }))
}
