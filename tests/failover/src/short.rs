//! The short form, for CI: what must hold whatever the machine does. How long anything
//! takes is not looked at, and a fault that does not come about in time proves nothing.

use std::io;
use std::thread;

use crate::fault::Fault;
use crate::round::{self, Options, Outcome};
use crate::rule::{Rule, RULES};
use crate::world::Times;
use crate::{say, Plan};

/// A hold begins when all replicas have it.
const STRICT: Rule = Rule { wait: 2, min: 0 };

/// Whether nothing was found. With one rule named that one is used, to see it fail.
pub fn run(plan: &Plan) -> io::Result<bool> {
    let rule = match plan.rules.len() {
        1 => plan.rules[0],
        _ => STRICT,
    };
    debug_assert!(RULES.contains(&STRICT));
    let one = |fault: Fault| {
        let options = Options {
            // A busy machine is not to be taken for a dead one.
            down_after: if fault == Fault::Kill { 3000 } else { 10_000 },
            times: Times {
                lease: 6_000,
                wait: 7_000,
                grace: 15_000,
            },
            take: true,
            ..plan.options
        };
        let outcome = round::run(&plan.dir.join(format!("{fault:?}")), fault, rule, options);
        match outcome {
            Ok(Some(outcome)) => {
                say(fault, rule, 0, &outcome);
                stands(fault, &outcome)
            }
            Ok(None) => skipped(fault, "it was refused"),
            Err(error) => skipped(fault, &error.to_string()),
        }
    };
    Ok(thread::scope(|scope| {
        let kill = scope.spawn(|| one(Fault::Kill));
        let asked = one(Fault::SentinelFailover);
        // A panic is a fault of this program.
        asked & kill.join().unwrap_or(false)
    }))
}

fn skipped(fault: Fault, why: &str) -> bool {
    println!("{}: skipped, {why}", fault.name());
    true
}

fn stands(fault: Fault, outcome: &Outcome) -> bool {
    let mut found: Vec<String> = outcome.verdict.examples.clone();
    found.extend(outcome.faults.iter().cloned());
    if !outcome.known {
        skipped(fault, "nobody took over in time");
    } else {
        if outcome.unanswered != 0 {
            found.push(format!("{} waits were never answered", outcome.unanswered));
        }
        let stuck = outcome.stuck.iter().flat_map(|(keys, _)| keys);
        found.extend(stuck.map(|key| format!("{key} is held for ever")));
    }
    for line in found.iter().take(10) {
        println!("{}: {line}", fault.name());
    }
    let new = outcome.notes.holds.iter().filter(|hold| !hold.on_old);
    println!(
        "{}: {} holds, {} of them at the new master, {} findings",
        fault.name(),
        outcome.notes.holds.len(),
        new.count(),
        found.len()
    );
    found.is_empty()
}
