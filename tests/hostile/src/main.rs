//! Sends rlock what nobody should send, and looks that it stands: no crash, no fault in the
//! log, replies as documented, nothing changed by what is refused, and all can be freed.
//!
//! `hostile --seconds=60 --seed=8`, `--commands=10000000` at most, `--only=storm` without the looks
//! at single requests, `--only=looks` without the storm; with RLOCK_MODULE and RLOCK_SERVER as in the Makefile.

mod acl;
mod draw;
mod figures;
mod gambits;
mod link;
mod peer;
mod quiet;
mod resp;
mod rest;
mod server;
mod shape;
mod storm;
mod stuck;

use std::env;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use figures::Figures;
use server::Server;
use storm::Storm;

/// So many commands of a storm are a round.
const ROUND: u64 = 200_000;
/// It lasts no longer on a slow machine.
const STORM: Duration = Duration::from_secs(15);
/// So long a round looks at single requests.
const QUIET: Duration = Duration::from_secs(2);
/// What memory may differ by from one round at rest to another.
const SLACK: u64 = 2 << 20;

fn main() -> ExitCode {
    let seconds = said("seconds")
        .and_then(|text| text.parse().ok())
        .unwrap_or(60);
    let seed = said("seed").and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(1..1_000_000));
    let commands = said("commands")
        .and_then(|text| text.parse().ok())
        .unwrap_or(u64::MAX);
    println!("hostile: SEED={seed} for {seconds} s");
    let mut figures = Figures::default();
    let end = Instant::now() + Duration::from_secs(seconds);
    let ran = run(seed, end, commands, &mut figures);
    println!("{figures}");
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            println!("FOUND with SEED={seed}, round {}: {what}", figures.rounds);
            ExitCode::FAILURE
        }
    }
}

/// What stands behind `--name=`, if anything.
fn said(name: &str) -> Option<String> {
    let is_it = |arg: String| {
        Some(
            arg.strip_prefix("--")?
                .strip_prefix(name)?
                .strip_prefix('=')?
                .to_owned(),
        )
    };
    env::args().find_map(is_it).filter(|text| !text.is_empty())
}

fn run(seed: u64, end: Instant, commands: u64, figures: &mut Figures) -> Result<(), String> {
    let mut server = Server::start().map_err(|error| error.to_string())?;
    let mut used = Vec::new();
    let only = said("only");
    let (storms, looks) = match only.as_deref() {
        Some("storm") => (true, false),
        Some("looks") => (false, true),
        _ => (true, true),
    };
    while Instant::now() < end && figures.total() < commands {
        figures.rounds += 1;
        let part = seed.wrapping_mul(1_000_003).wrapping_add(figures.rounds);
        // The last round, or the only one, has its looks too.
        let storm = if looks { end - 2 * QUIET } else { end };
        let storm = storm.min(Instant::now() + STORM);
        if storms {
            Storm::new(&mut server, figures, part)
                .map_err(|error| error.to_string())?
                .run(ROUND, storm)?;
        }
        if looks {
            rest::calm_down(&server)?;
            let quiet = end.min(Instant::now() + QUIET);
            quiet::run(&mut server, figures, part, quiet)?;
            let quiet = end.min(Instant::now() + QUIET);
            acl::run(&mut server, figures, part, quiet)?;
        }
        used.push(rest::rest(&mut server)?);
    }
    println!("memory at rest, bytes: {used:?}");
    grows(&used)
}

/// The last third of all rounds beside the first: what is left behind by each request is far more
/// than what differs from round to round.
fn grows(used: &[u64]) -> Result<(), String> {
    let part = (used.len() / 3).max(1);
    let (first, last) = (
        used.iter().take(part).max(),
        used.iter().rev().take(part).min(),
    );
    if let (Some(first), Some(last)) = (first, last) {
        if *last > first + SLACK {
            return Err(format!("memory grows from round to round: {used:?}"));
        }
    }
    Ok(())
}
