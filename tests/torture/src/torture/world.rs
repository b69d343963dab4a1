//! What a round has: servers, clients, those who watch them, and the record of what
//! is done to them.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rlock_torture::clock::now_us;
use rlock_torture::history::{Crash, Fault, Record, Recorder, Round};

use crate::clients::Client;
use crate::disk::Disk;
use crate::link::Link;
use crate::means::Means;
use crate::plan::{Plan, Topology};
use crate::pulse::Pulse;
use crate::sentinel::Watch;
use crate::servers::Server;
use crate::traffic::names::{hot, tags};

pub struct World {
    pub plan: Plan,
    pub dir: PathBuf,
    pub servers: Vec<Server>,
    /// Which of them is master, outside a cluster.
    pub master: usize,
    /// It was another before.
    pub switched: bool,
    /// The sentinels, if there are some; and when they were asked last.
    pub watch: Option<Watch>,
    pub checked: u64,
    pub clients: Vec<Client>,
    pub heard: Receiver<()>,
    subscribers: Vec<Client>,
    pulses: Vec<Pulse>,
    pub to: Recorder,
    crashed: bool,
}

impl World {
    pub fn start(plan: Plan, dir: &Path, means: &Means) -> io::Result<Self> {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir)?;
        fs::write(dir.join("schedule.txt"), plan.text())?;
        let mut servers = start_servers(&plan, dir, means)?;
        let watch = match plan.topology {
            Topology::Sentinel => Some(Watch::start(dir, &mut servers)?),
            _ => None,
        };
        let to = Recorder::create(&dir.join("history.0.jsonl"))?;
        let (words, heard) = channel();
        let mut world = Self {
            plan,
            dir: dir.to_owned(),
            servers,
            master: 0,
            switched: false,
            watch,
            checked: now_us(),
            clients: Vec::new(),
            heard,
            subscribers: Vec::new(),
            pulses: Vec::new(),
            to,
            crashed: false,
        };
        world.describe()?;
        for at in 0..world.servers.len() {
            let port = world.servers[at].port;
            let file = dir.join(format!("history.pulse-{at}.jsonl"));
            world.pulses.push(Pulse::start(port, file));
            let file = dir.join(format!("history.events-{at}.jsonl"));
            let args = ["subscribe", &port.to_string(), &file.display().to_string()];
            let subscriber = Client::start(&args.map(str::to_owned), None)?;
            world.subscribers.push(subscriber);
        }
        let ports: Vec<String> = world.servers.iter().map(|s| s.port.to_string()).collect();
        for process in 1..=world.plan.clients {
            let file = dir.join(format!("history.client-{process}.jsonl"));
            let args = [
                "client",
                &process.to_string(),
                &world.plan.rng.u64(..).to_string(),
                &world.plan.lanes.to_string(),
                &ports.join(","),
                &(world.plan.topology == Topology::Cluster).to_string(),
                &world.plan.dbs.to_string(),
                &file.display().to_string(),
                &world.plan.wait().to_string(),
            ];
            let client = Client::start(&args.map(str::to_owned), Some(words.clone()))?;
            world.clients.push(client);
        }
        Ok(world)
    }

    fn describe(&mut self) -> io::Result<()> {
        let info = self.servers[0].link()?.info("server")?;
        let field = |name: &str| info.iter().find(|(found, _)| found == name);
        let server = field("valkey_version").map(|(_, version)| format!("valkey {version}"));
        let redis = field("redis_version").map(|(_, version)| format!("redis {version}"));
        let plan = &self.plan;
        self.to.write(&Record::Round(Round {
            seed: plan.seed,
            round: plan.round,
            server: server.or(redis).unwrap_or_default(),
            topology: plan.topology.to_string(),
            persistence: if plan.aof { "always" } else { "none" }.to_owned(),
            repeat: format!(
                "make torture SEED={} ROUND={} TOPOLOGY={} ROUND_SECONDS={}",
                plan.seed, plan.round, plan.topology, plan.seconds
            ),
            at: now_us(),
            wait: plan.wait(),
            strict: plan.strict,
            threads: plan.threads,
        }))
    }

    pub fn master(&self) -> &Server {
        &self.servers[self.master]
    }

    pub fn link(&self) -> io::Result<Link> {
        named(self.master().link()?)
    }

    /// All servers that clients write to.
    pub fn writable(&self) -> Vec<usize> {
        match self.plan.topology {
            Topology::Cluster => (0..self.servers.len()).collect(),
            _ => vec![self.master],
        }
    }

    pub fn hot_keys(&self) -> Vec<String> {
        let cluster = self.plan.topology == Topology::Cluster;
        tags(cluster).iter().flat_map(|tag| hot(tag)).collect()
    }

    pub fn record(&mut self, fault: Fault) -> io::Result<()> {
        self.to.write(&Record::Fault(fault))
    }

    /// Whether a server has ended by itself. It is told once.
    pub fn crashed(&mut self) -> io::Result<bool> {
        for at in 0..self.servers.len() {
            if self.servers[at].is_gone() && !self.crashed {
                self.crashed = true;
                self.crash(at)?;
            }
        }
        Ok(self.crashed)
    }

    fn crash(&mut self, at: usize) -> io::Result<()> {
        let server = &self.servers[at];
        let log = server.log();
        let text = match log.find("BUG REPORT START") {
            Some(start) => log[start..].chars().take(2500).collect(),
            None => server.log_tail(40),
        };
        let crash = Crash {
            server: server.port,
            at: now_us(),
            text,
        };
        self.to.write(&Record::Crash(crash))
    }

    /// Ends everything; the history is complete then.
    pub fn end(mut self) -> io::Result<()> {
        let crashed = self.crashed()?;
        for client in &mut self.clients {
            if !client.end() {
                self.to.flush()?;
                return Err(Error::other("a client process failed"));
            }
        }
        for subscriber in &mut self.subscribers {
            subscriber.end();
        }
        for pulse in self.pulses.drain(..) {
            pulse.end()?;
        }
        if !crashed {
            self.crashed()?;
        }
        for at in 0..self.servers.len() {
            // A panic that was caught is a fault all the same.
            let log = self.servers[at].log();
            if let Some(line) = log.lines().find(|line| line.contains("panic")) {
                let (server, text) = (self.servers[at].port, line.to_owned());
                let at = now_us();
                self.to.write(&Record::Crash(Crash { server, at, text }))?;
            }
            let run = self.servers[at].end();
            self.to.write(&Record::Run(run))?;
        }
        self.to.flush()
    }
}

/// A connection that is left alone when clients are killed.
pub fn named(mut link: Link) -> io::Result<Link> {
    link.must("CLIENT SETNAME torture")?;
    Ok(link)
}

/// Waits until something is so; an error after `bound`.
pub fn eventually(
    what: &str,
    bound: Duration,
    mut so: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    let end = Instant::now() + bound;
    loop {
        if so().unwrap_or(false) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(Error::other(format!("waited in vain: {what}")));
        }
        sleep(Duration::from_millis(5));
    }
}

fn start_servers(plan: &Plan, dir: &Path, means: &Means) -> io::Result<Vec<Server>> {
    let mut options = vec!["--appendonly", if plan.aof { "yes" } else { "no" }];
    options.extend(["--appendfsync", "always"]);
    let settings: Vec<(String, &str)> = plan
        .settings
        .iter()
        .map(|(name, value)| (format!("--{name}"), *value))
        .collect();
    for (name, value) in &settings {
        options.extend([name.as_str(), value]);
    }
    if plan.topology == Topology::Cluster {
        options.extend(["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"]);
        options.extend(["--cluster-require-full-coverage", "no"]);
        options.extend(["--cluster-allow-replica-migration", "no"]);
    }
    let count = match plan.topology {
        Topology::Single => 1,
        Topology::Sentinel => 3,
        _ => 2,
    };
    let mut servers = Vec::new();
    for at in 0..count {
        let dir = dir.join(format!("server-{at}"));
        let disk = Means::disk_mb(plan).map(|mb| Disk::mount(&dir, mb));
        let disk = disk.transpose()?;
        let (shim, module) = (means.shim(plan), Some(means.module.as_path()));
        let mut server = Server::start_by(shim, &dir, module, &options)?;
        server.disk = disk;
        servers.push(server);
    }
    match plan.topology {
        Topology::Single | Topology::Sentinel => (),
        Topology::Replica => attach(&servers[1], &servers[0])?,
        Topology::Cluster => meet(&servers)?,
    }
    Ok(servers)
}

/// Makes one a replica of the other, and waits until it is in step.
pub fn attach(replica: &Server, master: &Server) -> io::Result<()> {
    let mut link = replica.link()?;
    link.must(&format!("REPLICAOF 127.0.0.1 {}", master.port))?;
    eventually("the replica is in step", Duration::from_secs(20), || {
        let status = link.info_field("replication", "master_link_status")?;
        Ok(status.as_deref() == Some("up"))
    })
}

fn meet(servers: &[Server]) -> io::Result<()> {
    let mut first = servers[0].link()?;
    first.must("CLUSTER ADDSLOTSRANGE 0 8191")?;
    servers[1]
        .link()?
        .must("CLUSTER ADDSLOTSRANGE 8192 16383")?;
    first.must(&format!("CLUSTER MEET 127.0.0.1 {}", servers[1].port))?;
    for server in servers {
        let mut link = server.link()?;
        eventually("the nodes agree", Duration::from_secs(20), || {
            let info = link.must("CLUSTER INFO")?;
            let text = info.text().unwrap_or_default();
            Ok(text.contains("cluster_state:ok")
                && text.contains("cluster_known_nodes:2")
                && text.contains("cluster_slots_assigned:16384"))
        })?;
    }
    Ok(())
}
