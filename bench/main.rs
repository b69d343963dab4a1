//! The benchmark of rlock: `cargo bench`, or `cargo bench --bench locks -- --help`.
//!
//! It starts servers of its own (`RLOCK_SERVER`, else `redis-server`) with the
//! module (`RLOCK_MODULE`, else `target/release/librlock.so`), others with the least module
//! (`RLOCK_LEAST`, else `target/release/librlock_least.so`), and measures
//!
//! - `pairs`: acquire and release of a free lock, beside Lua, `SET NX` and the least module;
//! - `contention`: crowds that contend for one lock, beside PING, the least module and other
//!   ways to lock;
//! - `permits`: locks that several may hold, beside plain ones and Redisson's semaphore;
//! - `expiry`: how late a lock is free whose lease has run out;
//! - `others`: what other commands lose while the module is loaded;
//! - `deadlock`: what it costs a request that blocks to look for a cycle;
//! - `growth`: the server's time beside more and more locks and waiters;
//! - `memory`: what a held lock and a waiter take;
//! - `stalls`: how long others wait while the server is at a long piece of work;
//! - `floods`: the same beside very many who wait, or locks, to which something happens;
//! - `sessions`: the same beside very many waits of one connection;
//! - `crowds`: n of what against each thing that can happen to it: instructions of a piece as
//!   n grows, and how long others wait;
//! - `list`: the same beside a listing of very many locks;
//! - `recovery`: the same beside the recovery scan of very many hashes;
//! - `clients`: the clients of each language beside what its users have now;
//! - `sticky`: locks that stay with a process between their uses, in each language;
//! - `costs`: instructions and bytes, of one module or several.
//!
//! What is compared is measured in turns on the same machine in the same run,
//! since a machine's speed changes while one looks on.

mod chapters;
mod clients;
mod contention;
mod costs;
mod crowds;
mod deadlock;
mod expiry;
mod floods;
mod growth;
mod held;
mod list;
mod load;
mod machine;
mod memory;
mod options;
mod others;
mod pairs;
mod permits;
mod picture;
mod recovery;
mod report;
mod saturated;
mod sessions;
mod stalls;
mod stats;
mod targets;
mod waits;

use std::process::ExitCode;
use std::time::Instant;

use load::{Outcome, Server};
use options::{Measurement, Options};
use report::Report;

fn main() -> ExitCode {
    let options = match Options::from_arguments(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(mistake) => {
            eprintln!("{mistake}\n\n{}", options::HELP);
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(report) if !report.missed().is_empty() => {
            eprintln!("missed: {}", report.missed().join("; "));
            ExitCode::FAILURE
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the benchmark failed: {error}");
            ExitCode::from(2)
        }
    }
}

/// Everything that was asked for, in a fixed order: on some servers a first
/// waiter changes what comes after it.
fn measure(options: &Options) -> Outcome<Report> {
    load::raise_open_files()?;
    let mut report = Report::new(options.report.clone(), !options.quick);
    let server = Server::start(&options.server, options.module.as_deref())?;
    machine::describe(&mut server.connect()?, &mut report)?;

    for &measurement in &options.measurements {
        let [title, text] = chapters::of(measurement);
        report.chapter(title, text);
        let began = Instant::now();
        match measurement {
            Measurement::Pairs => pairs::measure(&server, options, &mut report)?,
            Measurement::Contention => contention::measure(options, &mut report)?,
            Measurement::Permits => permits::measure(options, &mut report)?,
            Measurement::Expiry => {
                expiry::measure(options, &mut report)?;
                saturated::measure(options, &mut report)?;
            }
            Measurement::Others => others::measure(options, &mut report)?,
            Measurement::Deadlock => deadlock::measure(options, &mut report)?,
            Measurement::Growth => growth::measure(options, &mut report)?,
            Measurement::Memory => memory::measure(options, &mut report)?,
            Measurement::Stalls => stalls::measure(options, &mut report)?,
            Measurement::Floods => floods::measure(options, &mut report)?,
            Measurement::Sessions => sessions::measure(options, &mut report)?,
            Measurement::Crowds => crowds::measure(options, &mut report)?,
            Measurement::List => list::measure(options, &mut report)?,
            Measurement::Recovery => recovery::measure(options, &mut report)?,
            Measurement::Clients => clients::measure(options, &mut report)?,
            Measurement::Plain => clients::measure_plain(options, &mut report)?,
            Measurement::Sticky => clients::measure_sticky(options, &mut report)?,
            Measurement::Costs => costs::measure(options, &mut report)?,
        }
        report.say(&format!("Measured in {} s.", began.elapsed().as_secs()));
        // What one measurement leaves behind is not to burden the next.
        server.connect()?.call(&["FLUSHALL"])?;
    }
    report.write()?;
    Ok(report)
}
