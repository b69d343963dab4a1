//! Ten permits among a hundred clients in five processes, of which one is killed while it
//! holds two: by rlock, and by Redisson's semaphore whose permits have leases.

use std::thread;
use std::time::{Duration, Instant};

use super::program::Program;
use crate::load::{Crew, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};

/// As the Java program has it.
const LIMIT: i64 = 10;

const PROCESSES: usize = 5;
const CLIENTS_EACH: usize = 20;

/// A fifth of all permits, and so many holders, die.
const DIE: i64 = LIMIT / 5;

const NOTES: [&str; 9] = [
    "One Java program on both sides: a client takes one of 10 permits, gives it back at once,",
    "and asks again; a thread and a connection for each, one request at a time. By rlock with",
    "ACQUIRE, LIMIT 10, BLOCK and WATCHDOG, by Redisson with acquire(lease) of its",
    "RPermitExpirableSemaphore, a Redisson client for each (those of a process share their",
    "threads), on a server without the module. One process of the five is killed (SIGKILL) when",
    "it holds two permits, or more. Lost: what cannot be had when all others have given back,",
    "after as long as was measured. All leases are of 30 s. Redisson's come back when those end,",
    "and so would rlock's without WATCHDOG; of permits without a lease Redisson's never do. The",
    "target is for the rate while all live.",
];

/// Measures both and prints, if the program can be built.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let title = "Ten permits among a hundred clients, beside Redisson's semaphore";
    let mut table = Table::new(
        title,
        &[
            "by",
            "grants/s",
            "ratio",
            "target",
            "",
            "after the kill",
            "died",
            "lost",
            "target",
            "",
        ],
    );
    let program = match Program::build()? {
        Ok(program) => program,
        Err(why) => {
            table.note(format!("skipped: {why}"));
            report.print(&table);
            return Ok(());
        }
    };
    let bare = Server::start(&options.server, None)?;
    let theirs = run(&program, &bare, "redisson", options)?;
    drop(bare);
    let server = Server::start(&options.server, options.module.as_deref())?;
    let ours = run(&program, &server, "rlock", options)?;

    let ratio = ours.before / theirs.before;
    let speed = report.judge(
        "grants by rlock / by Redisson",
        ratio,
        Target::AtLeast(20.0),
    );
    let safety = report.judge("permits lost", ours.lost as f64, Target::AtMost(0.0));
    let mut row = vec!["rlock".to_owned(), grouped(ours.before)];
    row.push(format!("{ratio:.1}"));
    row.extend(speed);
    row.extend(ours.fate());
    row.extend(safety);
    table.row(row);
    let none = [String::new(), String::new(), String::new()];
    let row = ["Redisson".to_owned(), grouped(theirs.before)];
    table.row(row.into_iter().chain(none).chain(theirs.fate()));
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}

/// What one side came to.
struct Side {
    /// Grants per second while all live, ...
    before: f64,
    /// ... and after the kill.
    after: f64,
    died: i64,
    lost: i64,
}

impl Side {
    fn fate(&self) -> [String; 3] {
        [
            grouped(self.after),
            self.died.to_string(),
            self.lost.to_string(),
        ]
    }
}

fn run(program: &Program, server: &Server, side: &str, options: &Options) -> Outcome<Side> {
    let mut crew = program.start(server, side, [PROCESSES, CLIENTS_EACH])?;
    crew.tell("go")?;
    // Java is slow at first.
    thread::sleep(options.millis(4_000, 1_000));
    let time = options.millis(5_000, 1_000);
    let before = rate(&mut crew, time)?;
    let died = crew.tell_one(&format!("keep {DIE}"))?;
    crew.kill_one();
    let after = rate(&mut crew, time)?;
    crew.tell("stop")?;
    let available = crew.tell_one("available")?;
    Ok(Side {
        before,
        after,
        died,
        lost: LIMIT - available,
    })
}

/// Grants per second of all that live.
fn rate(crew: &mut Crew, time: Duration) -> Outcome<f64> {
    let (start, first) = (Instant::now(), crew.tell("count")?);
    thread::sleep(time);
    let grants = crew.tell("count")? - first;
    Ok(grants as f64 / start.elapsed().as_secs_f64())
}
