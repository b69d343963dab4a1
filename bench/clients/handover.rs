//! One lock from hand to hand: among many waits in one process, and among many processes.

use std::thread;
use std::time::{Duration, Instant};

use super::{called, Built};
use crate::load::{Crew, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Mark, Report, Table};

/// By how much it is to beat the best peer of its language, among processes.
const BETTER: f64 = 10.0;

const NOTES: [&str; 7] = [
    "Each worker takes one and the same lock, writes its name to a key (SET … GET), gives the",
    "lock back, and asks again at once. A hand-over is a turn whose predecessor was another",
    "worker's: with libraries that poll, who gives a lock back often takes it again before any",
    "other has looked. All by their libraries' defaults. In one process the workers are tasks",
    "(Python, Node, Go) or threads (Java) that share rlock's one connection, as its users would;",
    "the others have a client object each. The mark is for processes, against the best peer of",
    "the language. Peers run on a server without the module.",
];

/// How a crowd is spread.
#[derive(Clone, Copy)]
struct Crowd {
    processes: usize,
    workers: usize,
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
        "mark",
        "",
    ];
    let mut table = Table::new(title, &columns);
    for built in there {
        let language = built.language;
        let server = Server::start(&options.server, options.module.as_deref())?;
        let ours = [one, many].map(|crowd| rate(built, "rlock", &server, crowd, options));
        let [in_one, among] = ours;
        let (in_one, among) = (in_one?, among?);
        drop(server);
        let mut best: f64 = 0.0;
        let mut rows = Vec::new();
        for (side, words) in language.peers {
            let bare = Server::start(&options.server, None)?;
            let in_one = rate(built, side, &bare, one, options)?;
            let among = rate(built, side, &bare, many, options)?;
            best = best.max(among);
            rows.push([called(language, words), grouped(in_one), tenths(among)]);
        }
        let ratio = among / best.max(f64::MIN_POSITIVE);
        let what = format!("{}: hand-overs by rlock / by the best peer", language.name);
        let verdict = report.judge(&what, ratio, Mark::AtLeast(BETTER));
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
    for note in NOTES {
        table.note(note);
    }
    skipped.iter().for_each(|line| table.note(line.as_str()));
    report.print(&table);
    Ok(())
}

/// Peers can be slow.
fn tenths(rate: f64) -> String {
    if rate < 100.0 {
        format!("{rate:.1}")
    } else {
        grouped(rate)
    }
}

/// Hand-overs a second.
fn rate(
    built: &Built,
    side: &str,
    server: &Server,
    crowd: Crowd,
    options: &Options,
) -> Outcome<f64> {
    // Whoever was killed before may hold the lock still.
    server.connect()?.call(&["FLUSHALL"])?;
    let mut crew = built.start(side, server, [crowd.processes, crowd.workers])?;
    crew.tell("go")?;
    // Some are slow at first.
    thread::sleep(options.millis(6_000, 500));
    let rate = counted(&mut crew, options.millis(5_000, 1_000))?;
    Ok(rate)
}

fn counted(crew: &mut Crew, time: Duration) -> Outcome<f64> {
    let (start, first) = (Instant::now(), crew.tell("count")?);
    thread::sleep(time);
    let grants = crew.tell("count")? - first;
    Ok(grants as f64 / start.elapsed().as_secs_f64())
}
