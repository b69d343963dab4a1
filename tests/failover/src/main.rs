//! Replaces masters, as operators and Sentinel do, under load; counts what was held
//! twice and what everybody was told.

mod block;
mod clock;
mod cluster;
mod conn;
mod fault;
mod first;
mod judge;
mod report;
mod resp;
mod round;
mod rule;
mod server;
mod session;
mod set;
mod short;
mod wire;
mod worker;
mod world;

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use fault::{Fault, FAULTS};
use report::Report;
use round::{Options, Outcome};
use rule::{Rule, RULES};
use world::Times;

struct Plan {
    faults: Vec<Fault>,
    rules: Vec<Rule>,
    rounds: u32,
    options: Options,
    short: bool,
    /// The cluster and not Sentinel: all moves, or one.
    cluster: Option<String>,
    dir: PathBuf,
}

/// `--faults=kill,stop --rules=0,4 --rounds=5 --delay=15 --bare --take --short`
fn plan() -> Result<Plan, String> {
    let mut plan = Plan {
        faults: FAULTS.iter().map(|(fault, ..)| *fault).collect(),
        rules: RULES.to_vec(),
        rounds: 5,
        options: Options {
            delay: 15,
            down_after: 1500,
            times: Times {
                lease: 15_000,
                wait: 25_000,
                grace: 5_000,
            },
            bare: false,
            take: false,
        },
        short: false,
        cluster: None,
        dir: env::temp_dir().join(format!("rlock-failover-{}", std::process::id())),
    };
    for arg in env::args().skip(1) {
        let (name, value) = arg.split_once('=').unwrap_or((&arg, ""));
        let wrong = |_| format!("what is {arg}?");
        match name {
            _ if value.is_empty() && name.len() < arg.len() => {}
            "--faults" => {
                let known = |word: &str| FAULTS.iter().find(|(_, short, _)| *short == word);
                let all = value.split(',').map(|word| known(word).map(|one| one.0));
                let all: Option<Vec<Fault>> = all.collect();
                plan.faults = all.ok_or(format!("what is {arg}?"))?;
            }
            "--rules" => {
                let all = value
                    .split(',')
                    .map(|word| RULES.get(word.parse::<usize>().ok()?).copied());
                let all: Option<Vec<Rule>> = all.collect();
                plan.rules = all.ok_or(format!("what is {arg}?"))?;
            }
            "--rounds" => plan.rounds = value.parse().map_err(wrong)?,
            "--delay" => plan.options.delay = value.parse().map_err(wrong)?,
            "--cluster" => plan.cluster = Some(value.to_owned()),
            "--bare" => plan.options.bare = true,
            "--take" => plan.options.take = true,
            "--short" => plan.short = value != "0",
            _ => return Err(format!("what is {arg}?")),
        }
    }
    Ok(plan)
}

fn main() -> ExitCode {
    let plan = match plan() {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let done = match &plan.cluster {
        Some(only) => cluster::run(
            &plan.dir,
            plan.rounds,
            Some(only.as_str()).filter(|only| *only != "all"),
        ),
        None if plan.short => short::run(&plan),
        None => full(&plan),
    };
    match done {
        Ok(true) => {
            let _ = fs::remove_dir_all(&plan.dir);
            ExitCode::SUCCESS
        }
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn full(plan: &Plan) -> io::Result<bool> {
    let mut report = Report::default();
    for fault in &plan.faults {
        for rule in &plan.rules {
            for number in 0..plan.rounds {
                let name = format!("{fault:?}-{}-{}-{number}", rule.wait, rule.min);
                let dir = plan.dir.join(name);
                let Some(outcome) = round::run(&dir, *fault, *rule, plan.options)? else {
                    eprintln!("{}: not here", fault.name());
                    break;
                };
                say(*fault, *rule, number, &outcome);
                report.add(*fault, *rule, &outcome);
                let _ = fs::remove_dir_all(&dir);
            }
        }
    }
    println!("{}", report.tables());
    Ok(true)
}

fn say(fault: Fault, rule: Rule, number: u32, outcome: &Outcome) {
    let verdict = &outcome.verdict;
    eprintln!(
        "{}, {}, round {number}: {} holds, doubles {:?}, open {}, known {}, unanswered {}, stuck {:?}",
        fault.name(),
        rule.name(),
        outcome.notes.holds.len(),
        verdict.doubles,
        verdict.open,
        outcome.known,
        outcome.unanswered,
        outcome.stuck.as_ref().map(|(keys, all)| (keys.len(), all)),
    );
    for line in &outcome.faults {
        eprintln!("  LOG: {line}");
    }
    for example in verdict
        .examples
        .iter()
        .step_by(verdict.examples.len() / 3 + 1)
    {
        eprintln!("  {example}");
    }
}
