//! What the server does for rlock, counted: instructions for each of a few
//! operations, and bytes for a lock. Unlike time they are hardly more or less on a
//! machine that is busy, so that two builds of the module can be compared.
//!
//! An operation's figure is the difference between doing it more and less often, with
//! all else alike, on a server that has done it before: what only a beginning takes
//! falls out. The server draws the seeds of its hash tables anew each time it starts,
//! which makes some percent, so each figure is the median of several servers.

mod floor;
mod others;
mod work;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::load::{Counts, Outcome, Server};
use crate::memory;
use crate::options::Options;
use crate::report::{grouped, Report, Table};
use crate::stats::median;
use work::{Work, ALL, HAND_OVER, PAIR, SET_AND_DEL};

/// Servers for each module.
const SERVERS: usize = 3;

/// Locks that are held to tell what one takes.
const LOCKS: usize = 100_000;

/// Counts for each module and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let Ok(version) = Command::new("valgrind").arg("--version").output() else {
        report.say("Skipped: there is no valgrind here.");
        return Ok(());
    };
    report.fact("valgrind", String::from_utf8_lossy(&version.stdout).trim());
    let counted = count(options, report)?;
    floor::measure(options, &counted, report)?;
    // Who compares modules asks for what these do.
    if options.modules.len() < 2 {
        others::measure(options, report)?;
    }
    Ok(())
}

/// The modules whose costs are counted, which are put side by side.
fn modules(options: &Options) -> Vec<&PathBuf> {
    match &options.modules[..] {
        [] => options.module.iter().collect(),
        several => several.iter().collect(),
    }
}

/// Of the last module what is held against the least that can be paid: instructions, and the
/// bytes of a lock.
struct Counted {
    pair: f64,
    set_and_del: f64,
    hand_over: f64,
    bytes: f64,
}

fn count(options: &Options, report: &mut Report) -> Outcome<Counted> {
    let modules = modules(options);
    let names: Vec<String> = modules.iter().map(|path| name(path)).collect();
    let mut columns = vec!["instructions of the server"];
    columns.extend(names.iter().map(String::as_str));
    let alone = modules.len() == 1;
    match alone {
        true => columns.extend(["in the module's code", "the server's", "libraries'"]),
        false => columns.push("last / first"),
    }
    // For each module and each work what the servers took.
    let mut counts = vec![vec![Vec::new(); ALL.len()]; modules.len()];
    for _ in 0..options.count(SERVERS, 1) {
        for (module, counts) in modules.iter().zip(&mut counts) {
            let mut server = Server::start_counted(&options.server, Some(module))?;
            server.count(true)?;
            for (work, counts) in ALL.iter().zip(counts) {
                counts.push(instructions(&mut server, work)?);
            }
        }
    }
    let mut table = Table::new("Instructions of operations, and bytes of a lock", &columns);
    let part = |counts: &[[f64; 4]], part: usize| {
        let all: Vec<f64> = counts.iter().map(|parts| parts[part]).collect();
        median(&all)
    };
    let of = |number: usize| -> Vec<f64> {
        let counts = counts.iter().map(|counts| part(&counts[number], 0));
        counts.collect()
    };
    for (number, work) in ALL.iter().enumerate() {
        let medians = of(number);
        let mut cells = row(work.name, &medians, grouped);
        if let [counts] = &counts[..] {
            cells.extend([1, 2, 3].map(|which| grouped(part(&counts[number], which))));
        }
        table.row(cells);
        let peer = ALL.iter().position(|peer| Some(peer.name) == work.peer);
        if let Some(peer) = peer {
            let ratios = medians.iter().zip(of(peer)).map(|(one, peer)| one / peer);
            let name = format!("  against {}", ALL[peer].name);
            table.row(row(&name, &ratios.collect::<Vec<f64>>(), ratio));
        }
    }
    let last = |name| {
        let work = ALL.iter().position(|work| work.name == name);
        let counts = work.zip(counts.last());
        counts.map_or(f64::NAN, |(work, counts)| part(&counts[work], 0))
    };
    let count = |module: &&PathBuf| {
        let server = Server::start(&options.server, Some(module))?;
        memory::per_lock(&server, LOCKS)
    };
    let bytes: Vec<f64> = modules.iter().map(count).collect::<Outcome<_>>()?;
    let name = "bytes of used_memory for a lock that is held";
    table.row(row(name, &bytes, grouped));
    table.note("Instructions: all that the server takes, its own share too, by valgrind's count.");
    if alone {
        table.note(
            "The module's code: without what it calls. Libraries: the allocator, libc, the vDSO.",
        );
    }
    table.note("Medians of several servers; from run to run they differ by a percent or two.");
    report.print(&table);
    Ok(Counted {
        pair: last(PAIR),
        set_and_del: last(SET_AND_DEL),
        hand_over: last(HAND_OVER),
        bytes: bytes.last().copied().unwrap_or(f64::NAN),
    })
}

/// The file's name and the last folder's, which tell most builds apart.
fn name(module: &Path) -> String {
    let parts: Vec<_> = module.iter().map(|part| part.to_string_lossy()).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

fn row(name: &str, figures: &[f64], shown: fn(f64) -> String) -> Vec<String> {
    let mut cells = vec![name.to_owned()];
    cells.extend(figures.iter().map(|&figure| shown(figure)));
    if let [first, .., last] = figures {
        cells.push(format!("{:.3}", last / first));
    }
    cells
}

/// Instructions for one operation: all, the module's, the server's and the libraries'.
fn instructions(server: &mut Server, work: &Work) -> Outcome<[f64; 4]> {
    let mut count = |times: usize| -> Outcome<Counts> {
        clear(server)?;
        server.instructions()?;
        let open = (work.run)(server, times)?;
        let count = server.instructions()?;
        // Closing them is not part of it.
        drop(open);
        Ok(count)
    };
    let [less, more] = work.times;
    count(less)?;
    Ok(count(more)?.each(count(less)?, more - less))
}

/// Leaves nothing behind of what came before.
fn clear(server: &Server) -> Outcome<()> {
    let mut control = server.connect()?;
    while control.info_number("clients", "connected_clients")? > 1.0 {
        sleep(Duration::from_millis(10));
    }
    control.call(&["FLUSHALL"])?;
    // What the module still does about it.
    sleep(Duration::from_millis(200));
    Ok(())
}
