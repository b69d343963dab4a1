//! What a round is like, and what is done to it when: all of it drawn from the seed,
//! so that the seed repeats it.

use std::env;
use std::fmt;

use fastrand::Rng;

use crate::switch::Switch;
use crate::traffic::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    Single,
    Replica,
    Cluster,
    /// A master, two replicas and three sentinels.
    Sentinel,
}

impl Topology {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "single" => Some(Self::Single),
            "replica" => Some(Self::Replica),
            "cluster" => Some(Self::Cluster),
            "sentinel" => Some(Self::Sentinel),
            _ => None,
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "single",
            Self::Replica => "replica",
            Self::Cluster => "cluster",
            Self::Sentinel => "sentinel",
        })
    }
}

/// What is done, to the master where no other is meant. Times in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// kill -9, and a start after so long.
    Kill(u64),
    Stop(u64),
    StopClient(u32, u64),
    KillClients(usize),
    Pause(u64, bool),
    Unblock(usize, bool),
    Force(String),
    Del(String),
    Pexpire(String, u64),
    Persist(String),
    Rename(String, String),
    FlushAll,
    SwapDb,
    Reload,
    Rewrite,
    Memory(u64),
    MinReplicas(u64),
    Detach(u64),
    /// The replica is promoted, the master demoted so long after.
    Demote(u64),
    Failover,
    /// The slot of a tag moves to the other node, so long between two keys.
    MoveSlot(String, u64, u64),
    /// The wall clock of a server is set off by so much, and right again after so long.
    Clock(usize, i64, u64),
    /// The disk of a server is full for so long; with `true` it writes once a second.
    Full(usize, u64, bool),
    /// The master is replaced by Sentinel.
    Switch(Switch, u64, u64),
    Rest,
}

impl Act {
    /// As the documentation says. What Sentinel does ends none that WAIT has made sure of.
    fn may_end_holds(&self) -> bool {
        let by_hand = matches!(
            self,
            Self::Force(_) | Self::Del(_) | Self::Pexpire(..) | Self::Persist(_)
        );
        let all = matches!(self, Self::Rename(..) | Self::FlushAll | Self::SwapDb);
        by_hand || all || matches!(self, Self::Demote(_) | Self::Clock(..))
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

pub struct Plan {
    pub seed: u64,
    pub round: u32,
    pub seconds: u64,
    pub topology: Topology,
    /// AOF with every write on the disk before its reply; else nothing at all.
    pub aof: bool,
    /// Two databases.
    pub dbs: bool,
    pub settings: Vec<(&'static str, &'static str)>,
    pub clients: u32,
    pub lanes: u32,
    /// Nothing is done that may end a hold, by the documentation: not by hand, nor to
    /// clocks, nor are there ever two masters.
    pub strict: bool,
    /// The server reads requests in several threads.
    pub threads: bool,
    pub schedule: Vec<(u64, Act)>,
    pub rng: Rng,
}

impl Plan {
    /// With `only`, of what is done to whole servers nothing else.
    pub fn draw(
        seed: u64,
        round: u32,
        seconds: u64,
        topology: Option<Topology>,
        only: Option<&str>,
    ) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(round.into()));
        let all = [Topology::Single, Topology::Replica, Topology::Cluster];
        let drawn = all[(seed as usize).wrapping_add(round as usize) % all.len()];
        let sum = seed.wrapping_add(round.into());
        let drawn = match (round, sum % 4) {
            (1.., 3) => Topology::Sentinel,
            _ => drawn,
        };
        let topology = topology.unwrap_or(drawn);
        let strict = sum / 3 % 2 == 1;
        let aof = topology != Topology::Single || rng.u32(0..3) > 0;
        let options = env::var("RLOCK_SERVER_OPTIONS").unwrap_or_default();
        let threads = options.contains("--io-threads");
        let mut plan = Self {
            seed,
            round,
            seconds,
            topology,
            // Redis 8.2 replies before it writes the AOF then.
            aof: (aof || strict) && !threads,
            threads,
            dbs: topology != Topology::Cluster && rng.u32(0..3) == 0,
            settings: settings(&mut rng),
            clients: 4,
            lanes: 8,
            strict,
            schedule: Vec::new(),
            rng: Rng::new(),
        };
        plan.schedule = plan.acts(&mut rng, only);
        // A server whose disk is full after a rewrite spoils its AOF, with rlock or without.
        let fills = plan.has(|act| matches!(act, Act::Full(..)));
        plan.schedule
            .retain(|(_, act)| !fills || *act != Act::Rewrite);
        plan.rng = rng;
        plan
    }

    /// For how many replicas holders wait: all of them, where a master may be lost.
    pub fn wait(&self) -> u32 {
        match self.topology {
            Topology::Sentinel if self.strict => 2,
            _ => 0,
        }
    }

    pub fn has(&self, is: impl Fn(&Act) -> bool) -> bool {
        self.schedule.iter().any(|(_, act)| is(act))
    }

    fn acts(&self, rng: &mut Rng, only: Option<&str>) -> Vec<(u64, Act)> {
        let end = self.seconds * 1000;
        let mut acts = Vec::new();
        let mut at = 400;
        let mut rested = self.seconds < 16;
        while at + 1500 < end {
            if !rested && at > end / 2 {
                rested = true;
                acts.push((at, Act::Rest));
            }
            // A calm stretch now and then: some things can be told only there.
            let (act, calm) = match rng.u32(0..10) {
                0..7 => (self.small(rng), rng.u64(50..500)),
                _ => (self.great(rng, only), rng.u64(1500..4500)),
            };
            if self.strict && act.may_end_holds() {
                continue;
            }
            acts.push((at, act));
            at += calm;
        }
        acts
    }

    fn hot(&self, rng: &mut Rng, letters: &str) -> String {
        let cluster = self.topology == Topology::Cluster;
        let tag = *rng.choice(names::tags(cluster)).expect("a tag");
        let hot = names::hot(tag);
        let fits = |key: &&String| letters.contains(&key[tag.len()..tag.len() + 1]);
        let fitting: Vec<&String> = hot.iter().filter(fits).collect();
        rng.choice(fitting).expect("a key").clone()
    }

    /// What concerns a key or a connection.
    fn small(&self, rng: &mut Rng) -> Act {
        match rng.u32(0..100) {
            0..20 => Act::KillClients(rng.usize(1..6)),
            20..34 => Act::Unblock(rng.usize(1..6), rng.bool()),
            34..50 => Act::Force(self.hot(rng, "prmxtu")),
            50..64 => Act::Del(self.hot(rng, "prmxtu")),
            64..74 => Act::Pexpire(self.hot(rng, "x"), rng.u64(1..900)),
            74..80 => Act::Persist(self.hot(rng, "x")),
            80..86 => {
                let from = self.hot(rng, "x");
                let (stem, number) = from.split_at(from.len() - 1);
                let other = ["1", "0", "3", "2"][number.parse::<usize>().unwrap_or(0)];
                Act::Rename(from.clone(), format!("{stem}{other}"))
            }
            86..92 => {
                // Longer than some patiences at times.
                let most = if rng.u32(0..3) > 0 { 1500 } else { 3000 };
                Act::StopClient(rng.u32(0..self.clients), rng.u64(50..most))
            }
            92..96 => Act::Rewrite,
            _ => Act::FlushAll,
        }
    }

    /// What concerns a whole server.
    fn great(&self, rng: &mut Rng, only: Option<&str>) -> Act {
        match only {
            Some("clock") => return self.clock(rng),
            Some("full") if self.aof => return self.full(rng),
            _ => (),
        }
        if self.topology == Topology::Sentinel {
            return self.watched(rng);
        }
        let stop = Act::Stop(*rng.choice(&[20, 200, 600, 1500]).expect("a time"));
        match (rng.u32(0..127), self.topology) {
            (0..50, Topology::Cluster) => {
                let tag = *rng.choice(names::tags(true)).expect("a tag");
                Act::MoveSlot(tag.to_owned(), rng.u64(0..4), rng.u64(..))
            }
            (0..14, Topology::Replica) => Act::Detach(rng.u64(0..800)),
            (14..28, Topology::Replica) => Act::Demote(rng.u64(0..300)),
            (28..40, Topology::Replica) => Act::Failover,
            (40..50, Topology::Replica) | (50..60, _) => Act::MinReplicas(rng.u64(100..1200)),
            (0..25, Topology::Single) | (90..100, Topology::Replica) => Act::Kill(rng.u64(0..600)),
            (25..35, Topology::Single) if self.dbs => Act::SwapDb,
            (60..70, _) => Act::Memory(rng.u64(100..800)),
            (70..80, _) => Act::Pause(rng.u64(50..900), rng.bool()),
            (80..84, Topology::Single | Topology::Replica) => Act::Reload,
            (100..115, _) => self.clock(rng),
            (115.., _) if self.aof => self.full(rng),
            _ => stop,
        }
    }

    /// With sentinels, which must not take for dead what is not.
    fn watched(&self, rng: &mut Rng) -> Act {
        let hows = [
            Switch::Kill,
            Switch::Stop,
            Switch::Partition,
            Switch::Failover,
        ];
        match rng.u32(0..10) {
            0..7 => {
                let how = *rng.choice(&hows).expect("a way");
                Act::Switch(how, rng.u64(0..400), rng.u64(0..6000))
            }
            7 => Act::MinReplicas(rng.u64(100..800)),
            8 => Act::Pause(rng.u64(50..500), rng.bool()),
            _ => Act::Stop(200),
        }
    }

    fn clock(&self, rng: &mut Rng) -> Act {
        let by = *rng
            .choice(&[5, 40, 300, 1500, 6000, 30_000])
            .expect("a time");
        let off = if rng.bool() { by } else { -by };
        Act::Clock(rng.usize(0..2), off, rng.u64(20..2500))
    }

    fn full(&self, rng: &mut Rng) -> Act {
        Act::Full(rng.usize(0..2), rng.u64(0..800), rng.bool())
    }

    /// All of it, for a reader.
    pub fn text(&self) -> String {
        let mut text = format!(
            "seed {} round {}: {}, {}, {} clients of {} lanes{}{}\n",
            self.seed,
            self.round,
            self.topology,
            if self.aof {
                "AOF always"
            } else {
                "no persistence"
            },
            self.clients,
            self.lanes,
            if self.dbs { ", two databases" } else { "" },
            if self.strict { ", strict" } else { "" },
        );
        for (name, value) in &self.settings {
            text += &format!("  {name} {value}\n");
        }
        for (at, act) in &self.schedule {
            text += &format!("  {:>7.3} s  {act}\n", *at as f64 / 1000.0);
        }
        text
    }
}

fn settings(rng: &mut Rng) -> Vec<(&'static str, &'static str)> {
    let mut drawn = Vec::new();
    let all = [
        ("rlock.fencing", "counter"),
        ("rlock.deadlock-detection", "no"),
        ("rlock.watchdog-lost", "keep"),
        ("rlock.redisson-compat", "no"),
    ];
    for setting in all {
        if rng.u32(0..6) == 0 {
            drawn.push(setting);
        }
    }
    drawn
}
