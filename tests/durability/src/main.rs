//! Kills rlock's servers under load and looks at what they are after the restart; and
//! compares a master under load with its replicas and AOFs, whatever is done to them.

#[path = "../../failover/src/clock.rs"]
#[allow(dead_code)]
mod clock;
#[path = "../../failover/src/conn.rs"]
mod conn;
mod copies;
mod crash;
mod item;
mod load;
mod node;
mod power;
mod report;
#[path = "../../failover/src/resp.rs"]
mod resp;
#[path = "../../failover/src/server.rs"]
#[allow(dead_code)]
mod server;
#[path = "../../failover/src/wire.rs"]
mod wire;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clock::now_us;
use crash::MODES;
use report::Report;

struct Plan {
    seed: u64,
    seconds: u64,
    /// One round of this number; with it and the seed a round is repeated.
    round: Option<u64>,
    /// `crash` or `copies` alone.
    only: String,
    short: bool,
    /// Ends at the first finding.
    stop: bool,
}

/// `--seed=8 --seconds=60 --round=2 --only=copies --short=1 --stop`; what is empty counts as
/// not said.
fn plan() -> Result<Plan, String> {
    let mut plan = Plan {
        seed: now_us() % 1_000_000,
        seconds: 60,
        round: None,
        only: String::new(),
        short: false,
        stop: false,
    };
    for arg in env::args().skip(1) {
        let (name, value) = arg.split_once('=').unwrap_or((&arg, ""));
        let number = || value.parse().map_err(|_| format!("what is {arg}?"));
        match name {
            "--stop" => plan.stop = true,
            _ if value.is_empty() => {}
            "--seed" => plan.seed = number()?,
            "--seconds" => plan.seconds = number()?,
            "--round" => plan.round = Some(number()?),
            "--only" if ["crash", "copies"].contains(&value) => plan.only = value.to_owned(),
            "--short" => plan.short = value != "0",
            _ => return Err(format!("what is {arg}?")),
        }
    }
    if plan.short {
        plan.seconds = 14;
    }
    Ok(plan)
}

fn main() -> ExitCode {
    let dir = env::temp_dir().join(format!("rlock-durability-{}", std::process::id()));
    match plan().map(|plan| run(&plan, &dir)) {
        Ok(Ok(true)) => {
            let _ = fs::remove_dir_all(&dir);
            ExitCode::SUCCESS
        }
        Ok(Ok(false)) => ExitCode::FAILURE,
        Ok(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Rounds until the time is over. A round of replicas comes after each five kills.
fn run(plan: &Plan, dir: &Path) -> io::Result<bool> {
    fs::create_dir_all(dir)?;
    let power = power::prepare(dir)?;
    if !power {
        println!("no C compiler: power cuts are skipped");
    }
    println!("seed {}", plan.seed);
    let until = now_us() + plan.seconds * 1_000_000;
    let mut report = Report::default();
    let rounds = match plan.round {
        Some(round) => round..round + 1,
        None => 0..u64::MAX,
    };
    for number in rounds {
        if now_us() > until || plan.stop && !report.is_clean() {
            break;
        }
        let is_copies = number % 6 == 5;
        let skipped = ["copies", "crash"][usize::from(is_copies)];
        if plan.only == skipped {
            continue;
        }
        let place = Place {
            dir: dir.join(format!("round-{number}")),
            seed: plan.seed.wrapping_mul(1_000_003).wrapping_add(number),
            number,
        };
        let found = match is_copies {
            true => copies_round(plan, &place, until, &mut report),
            false => crash_round(plan, &place, power, &mut report),
        };
        report.found(plan.seed, number, &place.dir, found);
    }
    println!("{}", report.text());
    Ok(report.is_clean())
}

struct Place {
    dir: PathBuf,
    seed: u64,
    number: u64,
}

fn crash_round(plan: &Plan, place: &Place, power: bool, report: &mut Report) -> Vec<String> {
    let kill = place.number - place.number / 6;
    // In short each is killed soon, and those that let nothing be lost come first.
    let mode = &MODES[kill as usize % MODES.len()];
    if mode.power && !power {
        return Vec::new();
    }
    let ms = if plan.short { 600 } else { 1500 };
    match crash::run(&place.dir, mode, place.seed, ms) {
        Ok(outcome) => report.crash(mode.name, outcome),
        Err(error) => vec![format!("{}: {error}", mode.name)],
    }
}

fn copies_round(plan: &Plan, place: &Place, until: u64, report: &mut Report) -> Vec<String> {
    let (bouts, ms) = if plan.short { (2, 1000) } else { (8, 1500) };
    match copies::run(&place.dir, place.seed, bouts, ms, until) {
        Ok(done) => report.copies(done),
        Err(error) => vec![format!("copies: {error}")],
    }
}
