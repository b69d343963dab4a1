//! Other ways to lock, with crowds of the same size, turn by turn with rlock's BLOCK.

mod etcd;
mod postgres;
mod redisson;
mod rivals;
mod standing;
mod ways;

use std::time::Duration;

use etcd::Etcd;
use postgres::Postgres;
use rivals::Rivals;
use standing::Standing;
use ways::Way;

use super::contest::{self, Contest};
use super::evenness;
use crate::clients::language::Built;
use crate::load::{self, Outcome, Server};
use crate::options::Options;
use crate::report::{Report, Table};

/// How many contend.
const CROWDS: [usize; 4] = [2, 10, 100, 1_000];

/// Of Redisson.
const FEW: [usize; 2] = [2, 100];

const NOTES: [&str; 20] = [
    "A hand-over is a grant to another than the one before; all of rlock's are. *rlock is*: the",
    "median of its rate beside the other's, in turns. PostgreSQL and etcd have queues, too, so",
    "their turns count as hand-overs. Servers of peers run without the module.",
    "rlock: as above, by BLOCK. Lua + pub/sub: the scripts of Redisson, each with a RESP3",
    "connection that stays subscribed to the lock's channel. Who fails waits for a message and",
    "tries again; a release wakes all, and one wins. SET: who fails tries again after 1 to 10 ms",
    "at random. In both a holder waits for the reply to its release and then tries at once, so",
    "it may get the lock again before any other has looked: those grants are no hand-overs. The",
    "same single thread serves all of a crowd, as it does for rlock.",
    "PostgreSQL: pgbench -M prepared -j 2, each session in turn SELECT pg_advisory_lock(1) and",
    "SELECT pg_advisory_unlock(1), two statements of one round trip each, by a Unix socket,",
    "fsync off, all else as it comes.",
    "etcd: /v3/lock/lock and /v3/lock/unlock by HTTP, a thread, a connection and a lease for each",
    "client, one node, without fsync where it can do that. It keeps a log of each, in order to",
    "replicate it; what it promises is more, and so it costs more.",
    "Redisson: one process, a thread for each contender that locks, reads the clock, unlocks,",
    "and locks again; with a Redisson client each, as programs on many machines have it, or one",
    "client for all. After 2 s of it 3 s are counted; before, two have warmed up with another",
    "lock. Its client is slower than the loop that asks the others, which is part of what its",
    "users get.",
];

/// What came of it: hand-overs a second by crowd, by name.
pub type Series = Vec<(String, Vec<(f64, f64)>)>;

/// Measures all peers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<Series> {
    let mut table = Table::new(
        "One lock under contention, beside peers",
        &Standing::COLUMNS,
    );
    let others = Others::start(options)?;
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
        if !options.quick {
            table.row([String::new(), name.to_owned(), "not here".to_owned()]);
        }
        table.note(format!("{name} was not measured: {why}."));
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
}

impl Others {
    fn start(options: &Options) -> Outcome<Self> {
        if options.quick {
            let why = "it is left out of the short form";
            return Ok(Others {
                postgres: Err(why.into()),
                etcd: Err(why.into()),
                java: Err(why.into()),
            });
        }
        Ok(Others {
            postgres: Postgres::start()?,
            etcd: Etcd::start()?,
            java: redisson::build(options)?,
        })
    }

    fn measure(&self, field: &mut Field, options: &Options) -> Outcome<Vec<Standing>> {
        let crowd = field.crowd;
        let mut all = Vec::new();
        if let Ok(postgres) = &self.postgres {
            let run = || postgres.run(crowd, 2);
            all.push(field.beside("PostgreSQL advisory lock", 3, run)?);
        }
        if let Ok(etcd) = &self.etcd {
            let run = || etcd.run(crowd, Duration::from_secs(2));
            all.push(field.beside("etcd lock", 2, run)?);
        }
        if let (Ok(java), true) = (&self.java, FEW.contains(&crowd)) {
            for (side, name) in redisson::SIDES {
                let run = || redisson::run(java, options, side, crowd);
                all.push(field.beside(name, 1, run)?);
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

/// rlock's crowd, and what it came to beside the others.
struct Field {
    crowd: usize,
    contest: Contest,
    turn: Duration,
    rates: Vec<f64>,
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
            turn: options.millis(300, 100),
            rates: Vec::new(),
            _server: server,
        })
    }

    /// One turn of rlock's.
    fn turn(&mut self) -> Outcome<f64> {
        let rate = self.contest.run(self.turn)?;
        self.rates.push(rate);
        Ok(rate)
    }

    /// Turns of rlock and of another.
    fn beside(
        &mut self,
        name: &str,
        turns: usize,
        mut run: impl FnMut() -> Outcome<f64>,
    ) -> Outcome<Standing> {
        let mut standing = Standing::of(name, self.crowd);
        for _ in 0..turns {
            standing.ours.push(self.turn()?);
            standing.hand_overs.push(run()?);
        }
        Ok(standing)
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
            rivals.grants_of.fill(0);
            peers.push((rivals, standing, server));
        }
        for turn in 0..options.count(8, 2) {
            let ours = self.turn()?;
            for which in [turn % 2, (turn + 1) % 2] {
                let (rivals, standing, _) = &mut peers[which];
                let run = rivals.run(self.turn)?;
                standing.ours.push(ours);
                standing.hand_overs.push(run.hand_overs);
                standing.grants.push(run.grants);
            }
        }
        let standings = peers.into_iter().map(|(rivals, mut standing, _)| {
            standing.evenness = Some(evenness(&rivals.grants_of));
            standing
        });
        Ok(standings.collect())
    }

    /// What rlock came to in all of that.
    fn ours(mut self) -> Outcome<Standing> {
        let mut standing = Standing::of("rlock", self.crowd);
        self.contest.finish_round()?;
        standing.evenness = Some(evenness(&self.contest.grants_of));
        standing.hand_overs = self.rates.clone();
        standing.grants = self.rates;
        match self.contest.end()? {
            0 => Ok(standing),
            count => Err(format!("{count} double grants of rlock").into()),
        }
    }
}
