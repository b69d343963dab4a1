//! Redisson's own locks, by the Java program of the clients' benchmark.

use std::thread;
use std::time::Duration;

use crate::clients::language::{Built, LANGUAGES};
use crate::clients::turns::{clock, Turns};
use crate::load::{Outcome, Server};
use crate::options::Options;

/// The sides of the program, and what they are called in a table.
pub const SIDES: [(&str, &str); 4] = [
    ("redisson", "Redisson RLock, a client each"),
    ("redisson-shared", "Redisson RLock, one client"),
    ("redisson-fair", "Redisson RFairLock, a client each"),
    ("redisson-fair-shared", "Redisson RFairLock, one client"),
];

/// Builds the program; gives why not, where that cannot be.
pub fn build(options: &Options) -> Outcome<Result<Built<'static>, String>> {
    let java = LANGUAGES.iter().find(|language| language.name == "java");
    java.ok_or("there is no program in Java")?.build(options)
}

/// Hand-overs a second among so many threads of one process.
pub fn run(built: &Built<'_>, options: &Options, side: &str, threads: usize) -> Outcome<f64> {
    let server = Server::start(&options.server, None)?;
    let mut crew = built.start(side, &server, [1, threads])?;
    crew.tell("go")?;
    thread::sleep(Duration::from_secs(2));
    let start = clock();
    thread::sleep(Duration::from_secs(3));
    let time = start..clock();
    let turns = Turns::merged(&crew.ask("turns")?)?;
    Ok(turns.hand_overs(&time) as f64 / (time.end - time.start).as_secs_f64())
}
