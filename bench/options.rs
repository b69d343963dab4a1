//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// What `--help` prints.
pub const HELP: &str = "\
usage: cargo bench --bench locks -- [options]     (none: all of it, some 60 min)

  --only LIST    of pairs,contention,permits,expiry,others,deadlock,growth,
                 memory,stalls,floods,sessions,crowds,list,recovery,clients,costs
  --quick        a short form (some 3 min) that judges nothing; without it the status is 1
                 if a target is missed
  --report FILE  where the report goes, report.md or report-NAME.md, with its pictures beside
                 it (bench/report.md; target/bench/report.md if not all is measured in full;
                 report-SERVER.md if there is that variable)
  --row TEXT     of crowds the rows that have this in their names (as
                 'one owner waits for n locks: CANCEL'), with --quick too by instructions
  --no-counts    of crowds no instructions, only how long others wait
  --depth N      commands in flight where a load is pipelined (256)
  --no-module    only what needs no module: the peers, and how far two servers
                 without it differ, which is the noise of this machine
  --module FILE  a module whose costs to count in place of RLOCK_MODULE's; more of
                 them are put side by side (costs needs valgrind)

RLOCK_SERVER     the server to start (redis-server)
RLOCK_MODULE     the module to load (target/release/librlock.so)
RLOCK_LEAST      the least module, which rlock is held against
                 (target/release/librlock_least.so; figures beside it need it)
";

/// One part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measurement {
    Pairs,
    Contention,
    Permits,
    Expiry,
    Others,
    Deadlock,
    Growth,
    Memory,
    Stalls,
    Floods,
    Sessions,
    Crowds,
    List,
    Recovery,
    Clients,
    Plain,
    Sticky,
    Costs,
}

impl Measurement {
    /// All of them, in the order in which they run.
    const ALL: [(Measurement, &'static str); 18] = [
        (Measurement::Pairs, "pairs"),
        (Measurement::Contention, "contention"),
        (Measurement::Permits, "permits"),
        (Measurement::Expiry, "expiry"),
        (Measurement::Others, "others"),
        (Measurement::Deadlock, "deadlock"),
        (Measurement::Growth, "growth"),
        (Measurement::Memory, "memory"),
        (Measurement::Stalls, "stalls"),
        (Measurement::Floods, "floods"),
        (Measurement::Sessions, "sessions"),
        (Measurement::Crowds, "crowds"),
        (Measurement::List, "list"),
        (Measurement::Recovery, "recovery"),
        (Measurement::Clients, "clients"),
        (Measurement::Plain, "plain"),
        (Measurement::Sticky, "sticky"),
        (Measurement::Costs, "costs"),
    ];

    /// Those that run when none is asked for. To count takes longer than all else does in
    /// short.
    fn usual(quick: bool) -> Vec<Measurement> {
        let all = Self::ALL.map(|(measurement, _)| measurement);
        let usual = |one: &Measurement| !quick || *one != Measurement::Costs;
        all.into_iter().filter(usual).collect()
    }
}

/// What the user asked for.
pub struct Options {
    /// The server's program.
    pub server: String,
    /// The module to load; none with `--no-module`.
    pub module: Option<PathBuf>,
    /// The least module, which rlock is held against, if it was built.
    pub least: Option<PathBuf>,
    /// The modules whose costs are put side by side; none: that one.
    pub modules: Vec<PathBuf>,
    /// What to measure, in order.
    pub measurements: Vec<Measurement>,
    /// Measure briefly.
    pub quick: bool,
    /// Where the report goes.
    pub report: PathBuf,
    /// Commands in flight in a pipeline.
    pub depth: usize,
    /// Of the crowds those rows that have this in their names.
    pub row: String,
    /// Whether instructions of the crowds are not to be counted.
    pub no_counts: bool,
}

impl Options {
    /// None when help was asked for.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Options {
            server: std::env::var("RLOCK_SERVER").unwrap_or_else(|_| "redis-server".into()),
            module: None,
            least: least()?,
            modules: Vec::new(),
            measurements: Vec::new(),
            quick: false,
            report: PathBuf::new(),
            depth: 256,
            row: String::new(),
            no_counts: false,
        };
        let mut with_module = true;
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let missing = || format!("{argument} needs a value");
                arguments.next().ok_or_else(missing)
            };
            match argument.as_str() {
                "--help" | "-h" => return Ok(None),
                "--bench" => {} // cargo says so to every benchmark
                "--quick" => options.quick = true,
                "--no-module" => with_module = false,
                "--module" => options.modules.push(absolute(&value()?)?),
                "--only" => options.measurements = measurements(&value()?)?,
                "--report" => options.report = value()?.into(),
                "--row" => options.row = value()?,
                "--no-counts" => options.no_counts = true,
                "--depth" => options.depth = depth(&value()?)?,
                unknown => return Err(format!("unknown option {unknown:?}")),
            }
        }
        if let (true, Some(first)) = (with_module, options.modules.first()) {
            options.module = Some(first.clone());
        } else if with_module {
            let module = std::env::var("RLOCK_MODULE");
            let module = module.unwrap_or_else(|_| "target/release/librlock.so".into());
            options.module = Some(absolute(&module)?);
        } else {
            let possible = [Measurement::Pairs, Measurement::Others];
            options.measurements.retain(|one| possible.contains(one));
            if options.measurements.is_empty() {
                options.measurements = possible.into();
            }
        }
        let usual = Measurement::usual(options.quick);
        if options.measurements.is_empty() {
            options.measurements.clone_from(&usual);
        }
        if options.report.as_os_str().is_empty() {
            let all = options.measurements == usual && !options.quick;
            let folder = if all { "bench" } else { "target/bench" };
            let server = server().map(|name| format!("-{name}")).unwrap_or_default();
            options.report = Path::new(folder).join(format!("report{server}.md"));
        }
        Ok(Some(options))
    }

    /// How many of something: the full number, or that for `--quick`.
    pub fn count(&self, full: usize, quick: usize) -> usize {
        if self.quick {
            quick
        } else {
            full
        }
    }

    /// How many milliseconds: as `count`.
    pub fn millis(&self, full: u64, quick: u64) -> Duration {
        Duration::from_millis(if self.quick { quick } else { full })
    }
}

fn measurements(list: &str) -> Result<Vec<Measurement>, String> {
    let mut names: Vec<&str> = list.split(',').collect();
    let mut chosen = Vec::new();
    for (measurement, name) in Measurement::ALL {
        if names.contains(&name) {
            names.retain(|other| *other != name);
            chosen.push(measurement);
        }
    }
    match names.first() {
        None => Ok(chosen),
        Some(unknown) => Err(format!("there is no measurement {unknown:?}")),
    }
}

fn depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(depth @ 1..=1024) => Ok(depth),
        _ => Err(format!("--depth is 1 to 1024, not {text:?}")),
    }
}

/// What the server is called that `make bench SERVER=name` measures, or its program.
pub fn server() -> Option<String> {
    let name = std::env::var("SERVER").ok()?;
    let name = Path::new(&name).file_name()?.to_string_lossy();
    Some(name.into_owned())
}

/// The least module, if there is one: not all that is measured needs it.
fn least() -> Result<Option<PathBuf>, String> {
    match std::env::var("RLOCK_LEAST") {
        Ok(path) => absolute(&path).map(Some),
        Err(_) => Ok(std::fs::canonicalize("target/release/librlock_least.so").ok()),
    }
}

/// A module's path, absolute: the server runs in a folder of its own.
fn absolute(path: &str) -> Result<PathBuf, String> {
    std::fs::canonicalize(path).map_err(|error| {
        format!("{path}: {error}; build the module first, or name it by RLOCK_MODULE")
    })
}
