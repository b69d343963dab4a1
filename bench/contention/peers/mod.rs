//! Other ways to lock, with crowds of the same size, turn by turn with rlock's blocked waiters.

mod etcd;
mod postgres;
mod redisson;
mod rivals;
mod standing;
mod ways;

use std::time::{Duration, Instant};

use etcd::Etcd;
use postgres::Postgres;
use rivals::Rivals;
use standing::{Costs, Standing};
use ways::Way;

use super::contest::{self, Contest};
use super::evenness;
use crate::clients::language::Built;
use crate::load::{self, Connection, Outcome, Server};
use crate::options::Options;
use crate::picture::Series;
use crate::report::{Report, Table};

/// How many contend.
const CROWDS: [usize; 4] = [2, 10, 100, 1_000];

/// Of Redisson.
const FEW: [usize; 2] = [2, 100];

const NOTES: [&str; 27] = [
    "A hand-over is a grant to another than the one before; all of rlock's are. *rlock is*: the",
    "median of its rate beside the other's, in turns. PostgreSQL and etcd have queues, too, so",
    "their turns count as hand-overs. Servers of peers run without the module.",
    "For each hand-over: the commands that clients send (of rlock RELEASE and the next ACQUIRE),",
    "those too that try in vain, and the server's processor time (INFO cpu), both over all turns.",
    "Longest: how long one waited at most, from its wish to its grant, or in vain until the end of",
    "the last turn; time between turns does not count. Of those that have programs of their own",
    "these are not known.",
    "rlock: blocked waiters, as above. Lua + pub/sub: the scripts of Redisson, each with a RESP3",
    "connection that stays subscribed to the lock's channel. Who fails waits for a message and",
    "tries again; a release wakes all, and one wins. SET: who fails tries again after 1 to 10 ms",
    "at random. In both a holder waits for the reply to its release and then tries at once, so",
    "it may get the lock again before any other has looked: those grants are no hand-overs. The",
    "same single thread serves all of a crowd, as it does for rlock.",
    "PostgreSQL: pgbench -M prepared -j 2, each session in turn SELECT pg_advisory_lock(1) and",
    "SELECT pg_advisory_unlock(1), two statements of one round trip each, by a Unix socket,",
    "fsync off, all else unmodified.",
    "etcd: /v3/lock/lock and /v3/lock/unlock by HTTP, a thread, a connection and a lease for each",
    "client, one node, without fsync where it can do that. It keeps a log of each, in order to",
    "replicate it; what it promises is more, and so it costs more. Not with 1,000 clients, which",
    "would take minutes.",
    "Redisson: one process, a thread for each contender that locks, reads the clock, unlocks,",
    "and locks again; with a Redisson client each, as programs on many machines have it, or one",
    "client for all. After 2 s of it 3 s are counted, between two turns of rlock; before, two",
    "have warmed up with another lock. Defaults, but that clients of which there are 100 have",
    "fewer threads and idle connections. Its client is slower than the loop that asks the",
    "others, which is part of what its users get.",
];

/// What rlock is called among them.
const RLOCK: &str = "rlock (blocked waiters)";

/// Crowds in which a hand-over takes a peer very long: their turns are longer, and etcd's
/// lock, which each client of it is to have once before all can go, is left out.
const LARGE: usize = 1_000;

/// Measures all peers and prints; gives hand-overs a second by crowd.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<Series> {
    let mut table = Table::new(
        "One lock under contention, beside peers",
        &Standing::COLUMNS,
    );
    let mut others = Others::start(options)?;
    for (name, version) in others.versions()? {
        report.fact(name, &version);
    }
    let mut all = Vec::new();
    for crowd in CROWDS {
        if options.quick && !FEW.contains(&crowd) {
            continue;
        }
        if !load::may_open(2 * crowd + 100)? {
            let files = "need more files than may be open (ulimit -n)";
            table.note(format!("{crowd} contenders {files}."));
            continue;
        }
        let mut field = Field::start(options, crowd)?;
        all.extend(field.rivals(options)?);
        all.extend(others.measure(&mut field, options)?);
        all.push(field.ours()?);
    }
    for standing in &all {
        table.row(standing.row(report));
    }
    for (name, why) in others.missing() {
        table.note(format!("{name} was not measured: {why}."));
    }
    for why in others.failed {
        table.note(why);
    }
    NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);
    Ok(standing::series(&all))
}

/// What another program measures, or why it does not.
type Maybe<T> = Result<T, String>;

/// Those that have programs of their own.
struct Others {
    postgres: Maybe<Postgres>,
    etcd: Maybe<Etcd>,
    java: Maybe<Built<'static>>,
    /// What went wrong with them.
    failed: Vec<String>,
}

impl Others {
    fn start(options: &Options) -> Outcome<Self> {
        if options.quick {
            let why = "it is left out of the short form";
            return Ok(Others {
                postgres: Err(why.into()),
                etcd: Err(why.into()),
                java: Err(why.into()),
                failed: Vec::new(),
            });
        }
        Ok(Others {
            postgres: Postgres::start()?,
            etcd: Etcd::start()?,
            java: redisson::build(options)?,
            failed: Vec::new(),
        })
    }

    fn versions(&self) -> Outcome<Vec<(&'static str, String)>> {
        let mut versions = Vec::new();
        if let Ok(postgres) = &self.postgres {
            versions.push(("PostgreSQL", postgres.version()?));
        }
        if self.etcd.is_ok() {
            versions.push(("etcd", Etcd::version()?));
        }
        if let Ok(java) = &self.java {
            versions.push(("Redisson", java.versions.clone()));
        }
        Ok(versions)
    }

    /// One that fails does not end the run.
    fn measure(&mut self, field: &mut Field, options: &Options) -> Outcome<Vec<Standing>> {
        let crowd = field.crowd;
        let mut all = Vec::new();
        let mut measure = |name: &str, turns: usize, run: &dyn Fn() -> Outcome<f64>| {
            match field.beside(name, turns, run)? {
                Ok(standing) => all.push(standing),
                Err(why) => {
                    let what = format!("{name}, {crowd} contenders, failed");
                    self.failed.push(format!("{what}: {why}."));
                }
            }
            Outcome::Ok(())
        };
        if let Ok(postgres) = &self.postgres {
            measure("PostgreSQL advisory lock", 3, &|| postgres.run(crowd))?;
        }
        if let (Ok(etcd), ..LARGE) = (&self.etcd, crowd) {
            let run = || etcd.run(crowd, Duration::from_secs(2));
            measure("etcd lock", 2, &run)?;
        }
        if let (Ok(java), true) = (&self.java, FEW.contains(&crowd)) {
            for (side, name) in redisson::SIDES {
                measure(name, 1, &|| redisson::run(java, options, side, crowd))?;
            }
        }
        Ok(all)
    }

    fn missing(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("PostgreSQL", self.postgres.as_ref().err()),
            ("etcd", self.etcd.as_ref().err()),
            ("Redisson", self.java.as_ref().err()),
        ];
        let missing = all.into_iter();
        let missing = missing.filter_map(|(name, why)| Some((name, why?.as_str())));
        missing.collect()
    }
}

/// What a server took of a processor since its start, in s.
fn cpu(control: &mut Connection) -> Outcome<f64> {
    Ok(control.server_cpu_parts()?.iter().sum())
}

/// rlock's crowd, and what it came to beside the others.
struct Field {
    crowd: usize,
    contest: Contest,
    turn: Duration,
    rates: Vec<f64>,
    control: Connection,
    /// Of the server's processor, in s, and hand-overs, over all turns.
    spent: f64,
    hand_overs: f64,
    _server: Server,
}

impl Field {
    fn start(options: &Options, crowd: usize) -> Outcome<Self> {
        let server = Server::start(&options.server, options.module.as_deref())?;
        let mut contest = Contest::start(&server, crowd, contest::Way::Block)?;
        contest.run(options.millis(200, 50))?;
        contest.forget();
        Ok(Field {
            crowd,
            contest,
            turn: match crowd {
                LARGE.. => options.millis(1_000, 100),
                _ => options.millis(300, 100),
            },
            rates: Vec::new(),
            control: server.connect()?,
            spent: 0.0,
            hand_overs: 0.0,
            _server: server,
        })
    }

    /// One turn of rlock's.
    fn turn(&mut self) -> Outcome<f64> {
        let (before, start) = (cpu(&mut self.control)?, Instant::now());
        let rate = self.contest.run(self.turn)?;
        self.hand_overs += rate * start.elapsed().as_secs_f64();
        self.spent += cpu(&mut self.control)? - before;
        self.rates.push(rate);
        Ok(rate)
    }

    /// Turns of another between turns of rlock; or why the other failed.
    fn beside(
        &mut self,
        name: &str,
        turns: usize,
        run: &dyn Fn() -> Outcome<f64>,
    ) -> Outcome<Maybe<Standing>> {
        let mut standing = Standing::of(name, self.crowd);
        for _ in 0..turns {
            let before = self.turn()?;
            match run() {
                Ok(rate) => standing.hand_overs.push(rate),
                Err(why) => return Ok(Err(why.to_string())),
            }
            standing.ours.push(f64::midpoint(before, self.turn()?));
        }
        Ok(Ok(standing))
    }

    /// The peers that the same loop asks, each on a server of its own.
    fn rivals(&mut self, options: &Options) -> Outcome<Vec<Standing>> {
        let mut peers = Vec::new();
        for way in [Way::pub_sub, Way::polled] {
            let server = Server::start(&options.server, None)?;
            let way = way(&mut server.connect()?)?;
            let standing = Standing::of(way.name(), self.crowd);
            let mut rivals = Rivals::start(&server, self.crowd, way)?;
            rivals.run(self.turn)?;
            rivals.forget();
            let mut control = server.connect()?;
            let before = cpu(&mut control)?;
            peers.push((rivals, standing, server, control, before));
        }
        for turn in 0..options.count(8, 2) {
            let ours = self.turn()?;
            for which in [turn % 2, (turn + 1) % 2] {
                let (rivals, standing, ..) = &mut peers[which];
                let run = rivals.run(self.turn)?;
                standing.ours.push(ours);
                standing.hand_overs.push(run.hand_overs);
                standing.grants.push(run.grants);
            }
        }
        let mut standings = Vec::new();
        for (rivals, mut standing, _server, mut control, before) in peers {
            let hand_overs = rivals.hand_overs as f64;
            standing.evenness = Some(evenness(&rivals.grants_of));
            standing.costs = Some(Costs {
                commands: rivals.sent as f64 / hand_overs,
                server: (cpu(&mut control)? - before) * 1e6 / hand_overs,
                longest: rivals.waited.longest(),
            });
            standings.push(standing);
        }
        Ok(standings)
    }

    /// What rlock came to in all of that.
    fn ours(mut self) -> Outcome<Standing> {
        let mut standing = Standing::of(RLOCK, self.crowd);
        self.contest.finish_round()?;
        standing.evenness = Some(evenness(&self.contest.grants_of));
        standing.costs = Some(Costs {
            commands: 2.0,
            server: self.spent * 1e6 / self.hand_overs,
            longest: self.contest.waited.longest(),
        });
        standing.hand_overs = self.rates.clone();
        standing.grants = self.rates;
        match self.contest.end()? {
            0 => Ok(standing),
            count => Err(format!("{count} double grants of rlock").into()),
        }
    }
}
