//! Walks and prints: `cargo run --release [long|away|all]`, or a part of a run's name.

use std::time::Instant;

use rlock_quorum_model::runs::{self, Expect, Run};
use rlock_quorum_model::walk::walk;

/// More states than this fit in no small machine.
const MOST: usize = 40_000_000;

fn main() {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let (short, long) = (runs::kept_short(), runs::kept_long());
    let (away, not) = (runs::without(), runs::not_needed());
    let chosen: Vec<Run> = match asked.as_str() {
        "" => short.into_iter().chain(not).chain(away).collect(),
        "long" => long,
        "away" => away,
        name => {
            let all = short.into_iter().chain(not).chain(away).chain(long);
            all.filter(|run| run.name.contains(name)).collect()
        }
    };
    for run in chosen {
        show(&run);
    }
}

fn show(run: &Run) {
    let start = Instant::now();
    let seen = walk(&run.world, MOST);
    println!("## {}: {}", run.name, run.says);
    let whole = if seen.whole {
        "all states"
    } else {
        "not all states"
    };
    let seconds = start.elapsed().as_secs_f32();
    println!(
        "{whole}: {} states, {} steps, depth {}, {seconds:.1} s",
        seen.states, seen.steps, seen.depth
    );
    println!("came by: {:?}; expected: {:?}", seen.goals, run.expect);
    let found = seen
        .broken
        .as_ref()
        .map(|broken| Expect::Broken(broken.promise));
    if found.unwrap_or(Expect::Kept) != run.expect {
        println!("NOT AS EXPECTED");
    }
    if let Some(broken) = seen.broken {
        println!("{:?} is broken:", broken.promise);
        for (number, line) in broken.way.iter().enumerate() {
            println!("{:3}. {line}", number + 1);
        }
    }
    println!();
}
