//! One lock from hand to hand: among many waits in one process, and among many processes.

use std::thread;

use super::turns::{clock, Turns};
use super::{called, Built};
use crate::load::{Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};

/// By how much it is to beat the best peer of its language, among processes.
const BETTER: f64 = 10.0;

/// How hand-overs are measured, with the module and without it.
pub const HOW: [&str; 7] = [
    "Each worker takes one and the same lock, reads the clock twice, gives the lock back, and",
    "asks again at once. A hand-over is a turn whose predecessor was another worker's: with",
    "libraries that poll, who gives a lock back often takes it again before any other has",
    "looked. Processes live long, so each one has warmed up before it counts: two workers of",
    "its own have contended for another lock, for 1,000 turns or 2 s. All by their libraries'",
    "defaults, but that Redisson has fewer threads and idle connections, for there are 100 of",
    "it. Turns of rlock that overlap end the run; those of peers are counted here.",
];

const NOTES: [&str; 4] = [
    "In one process the workers are tasks (Python, Node, Go) or threads (Java) that share",
    "rlock's one connection, as its users would; the others have a client object each. The",
    "target is for processes, against the best peer of the language. Peers run on a server",
    "without the module.",
];

/// How a crowd is spread.
#[derive(Clone, Copy)]
pub struct Crowd {
    pub processes: usize,
    pub workers: usize,
}

/// Measures each language and prints.
pub fn measure(
    there: &[Built],
    skipped: &[String],
    options: &Options,
    report: &mut Report,
) -> Outcome<()> {
    let size = options.count(100, 5);
    let one = Crowd {
        processes: 1,
        workers: size,
    };
    let many = Crowd {
        processes: size,
        workers: 1,
    };
    let title = format!("Clients: hand-overs a second of one lock, {size} contend");
    let columns = [
        "by",
        "in one process",
        "among processes",
        "x best peer",
        "target",
        "",
    ];
    let mut table = Table::new(title, &columns);
    let mut shared = Vec::new();
    for built in there {
        let language = built.language;
        let server = Server::start(&options.server, options.module.as_deref())?;
        let ours = [one, many].map(|crowd| contest(built, "rlock", &server, crowd, options));
        let [in_one, among] = ours;
        let (in_one, among) = (in_one?.alone()?, among?.alone()?);
        drop(server);
        let mut best: f64 = 0.0;
        let mut rows = Vec::new();
        for (side, words) in language.peers {
            let bare = Server::start(&options.server, None)?;
            let in_one = contest(built, side, &bare, one, options)?;
            let among = contest(built, side, &bare, many, options)?;
            best = best.max(among.rate);
            let words = called(language, words);
            let overlaps = in_one.overlaps + among.overlaps;
            shared.extend(overlapped(&words, overlaps));
            rows.push([words, grouped(in_one.rate), tenths(among.rate)]);
        }
        let ratio = among / best.max(f64::MIN_POSITIVE);
        let what = format!("{}: hand-overs by rlock / by the best peer", language.name);
        let verdict = report.judge(&what, ratio, Target::AtLeast(BETTER));
        let mut row = vec![
            called(language, language.ours),
            grouped(in_one),
            grouped(among),
        ];
        row.push(format!("{ratio:.1}"));
        row.extend(verdict);
        table.row(row);
        rows.into_iter().for_each(|row| table.row(row));
    }
    HOW.iter().chain(&NOTES).for_each(|note| table.note(*note));
    let others = shared.iter().chain(skipped);
    others.for_each(|line| table.note(line.as_str()));
    report.print(&table);
    Ok(())
}

/// A line on turns that were not the only ones at their time.
pub fn overlapped(words: &str, overlaps: usize) -> Option<String> {
    (overlaps > 0).then(|| format!("{words}: {overlaps} turns overlapped others."))
}

/// Peers can be slow.
pub fn tenths(rate: f64) -> String {
    if rate < 100.0 {
        format!("{rate:.1}")
    } else {
        grouped(rate)
    }
}

/// What a crowd did.
pub struct Contest {
    /// Hand-overs a second.
    pub rate: f64,
    /// How many turns were not the only one at their time.
    pub overlaps: usize,
    /// ms between two turns of one worker, at the most.
    pub longest: f64,
}

impl Contest {
    /// The rate, if no two had the lock at once.
    fn alone(self) -> Outcome<f64> {
        match self.overlaps {
            0 => Ok(self.rate),
            overlaps => Err(format!("{overlaps} turns with rlock overlapped others").into()),
        }
    }
}

/// Lets a crowd contend for some seconds.
pub fn contest(
    built: &Built,
    side: &str,
    server: &Server,
    crowd: Crowd,
    options: &Options,
) -> Outcome<Contest> {
    // Whoever was killed before may hold the lock still.
    server.connect()?.call(&["FLUSHALL"])?;
    let mut crew = built.start(side, server, [crowd.processes, crowd.workers])?;
    crew.tell("go")?;
    // Until all have connected and had a turn.
    thread::sleep(options.millis(3_000, 500));
    let start = clock();
    thread::sleep(options.millis(5_000, 1_000));
    let time = start..clock();
    let turns = Turns::merged(&crew.ask("turns")?)?;
    let seconds = (time.end - time.start).as_secs_f64();
    Ok(Contest {
        rate: turns.hand_overs(&time) as f64 / seconds,
        overlaps: turns.overlaps(),
        longest: turns.longest(&time),
    })
}
