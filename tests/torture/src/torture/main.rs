//! The orchestrator: for each round it draws a plan from the seed, starts servers and
//! client processes, does to them what the plan says, and has the history judged by
//! another program.

mod clients;
#[allow(dead_code)] // shared with the tests of failovers
#[path = "../../../failover/src/clock.rs"]
mod clock;
mod disk;
mod faults;
mod full;
mod link;
mod means;
mod plan;
mod pulse;
mod resp;
mod rest;
mod sentinel;
mod servers;
mod shim;
mod steps;
mod subscriber;
mod switch;
mod traffic;
#[path = "../../../failover/src/wire.rs"]
mod wire;
mod world;

use std::env;
use std::fs::{self, File};
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use means::Means;
use plan::{Plan, Topology};
use rlock_torture::verdict::{Sum, Verdict};
use traffic::Orders;
use world::World;

struct Options {
    seed: u64,
    seconds: u64,
    round: Option<u32>,
    round_seconds: u64,
    topology: Option<Topology>,
    /// `clock`, `full`: of what is done to whole servers this alone.
    only: Option<String>,
    /// No further round after one in which something was found.
    stop: bool,
    dir: PathBuf,
    module: PathBuf,
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some("client") => client(&args).map(|()| true),
        Some("subscribe") => subscribe(&args).map(|()| true),
        _ => options(&args).and_then(|options| rounds(&options)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::from(2)
        }
    }
}

fn bad(what: &str) -> Error {
    Error::other(format!("not understood: {what}"))
}

fn number<N: std::str::FromStr>(text: Option<&String>) -> io::Result<N> {
    let text = text.ok_or_else(|| bad("a number is missing"))?;
    text.parse().map_err(|_| bad(text))
}

fn client(args: &[String]) -> io::Result<()> {
    let ports = args.get(4).ok_or_else(|| bad("no ports"))?;
    let ports = ports.split(',').map(|port| number(Some(&port.to_owned())));
    traffic::run(&Orders {
        process: number(args.get(1))?,
        seed: number(args.get(2))?,
        lanes: number(args.get(3))?,
        ports: ports.collect::<io::Result<_>>()?,
        cluster: number(args.get(5))?,
        dbs: number(args.get(6))?,
        file: args.get(7).ok_or_else(|| bad("no file"))?.into(),
        wait: number(args.get(8))?,
    })
}

fn subscribe(args: &[String]) -> io::Result<()> {
    let file = args.get(2).ok_or_else(|| bad("no file"))?;
    subscriber::run(number(args.get(1))?, Path::new(file))
}

fn options(args: &[String]) -> io::Result<Options> {
    let module = env::var_os("RLOCK_MODULE").ok_or_else(|| bad("RLOCK_MODULE is not set"))?;
    let mut options = Options {
        seed: rlock_torture::clock::wall_ms() / 1000,
        seconds: 60,
        round: None,
        round_seconds: 20,
        topology: None,
        only: None,
        stop: false,
        dir: env::temp_dir().join(format!("rlock-torture-{}", std::process::id())),
        module: PathBuf::from(module).canonicalize()?,
    };
    for arg in args {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        // `make` hands on what was not given as empty.
        if value.is_empty() && name != "--stop" {
            continue;
        }
        let value = value.to_owned();
        match name {
            "--seed" => options.seed = number(Some(&value))?,
            "--seconds" => options.seconds = number(Some(&value))?,
            "--round" => options.round = Some(number(Some(&value))?),
            "--round-seconds" => options.round_seconds = number(Some(&value))?,
            "--topology" => {
                options.topology = Some(Topology::parse(&value).ok_or_else(|| bad(&value))?);
            }
            "--only" => options.only = Some(value),
            "--dir" => options.dir = value.into(),
            "--stop" => options.stop = true,
            _ => return Err(bad(arg)),
        }
    }
    fs::create_dir_all(&options.dir)?;
    options.dir = options.dir.canonicalize()?;
    Ok(options)
}

/// Rounds until the time is over; whether nothing was found.
fn rounds(options: &Options) -> io::Result<bool> {
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut fine = true;
    let means = Means::find(&options.module, &options.dir);
    let mut sum = Sum::default();
    for number in options.round.unwrap_or(0).. {
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        let seconds = match options.round {
            Some(_) => options.round_seconds,
            None => options.round_seconds.min(left.max(5)),
        };
        let only = options.only.as_deref();
        let mut plan = Plan::draw(options.seed, number, seconds, options.topology, only);
        means.fit(&mut plan);
        let dir = options.dir.join(format!("{}-{number}", options.seed));
        print!("{}", plan.text());
        let found = !round(plan, &dir, &means)?;
        sum.add(Verdict::read(&dir)?);
        match found {
            true => println!("kept: {}", dir.display()),
            false if env::var_os("RLOCK_TORTURE_KEEP").is_some() => (),
            false => fs::remove_dir_all(&dir)?,
        }
        fine &= !found;
        let over = Instant::now() + Duration::from_secs(5) > end;
        if over || options.round.is_some() || (found && options.stop) {
            break;
        }
    }
    print!("{sum}");
    Ok(fine)
}

/// One round, judged; whether nothing was found.
fn round(plan: Plan, dir: &Path, means: &Means) -> io::Result<bool> {
    let schedule = plan.schedule.clone();
    let mut world = World::start(plan, dir, means)?;
    let mut begin = Instant::now();
    for (at, act) in &schedule {
        let due = begin + Duration::from_millis(*at);
        while Instant::now() < due && !world.crashed()? {
            sleep(
                due.saturating_duration_since(Instant::now())
                    .min(Duration::from_millis(50)),
            );
        }
        if world.crashed()? {
            break;
        }
        let before = Instant::now();
        if let Err(error) = world.act(act) {
            if !world.crashed()? {
                return Err(Error::other(format!(
                    "{act}: {error}; see {}",
                    dir.display()
                )));
            }
        }
        if *act == plan::Act::Rest {
            begin += before.elapsed();
        }
    }
    let over = begin + Duration::from_secs(world.plan.seconds);
    while Instant::now() < over && !world.crashed()? {
        sleep(Duration::from_millis(20));
    }
    if let Err(error) = rest::rest(&mut world) {
        if !world.crashed()? {
            return Err(error);
        }
    }
    world.end()?;
    judge(dir)
}

/// Puts the history together and has it judged.
fn judge(dir: &Path) -> io::Result<bool> {
    let path = dir.join("history.jsonl");
    let mut whole = File::create(&path)?;
    let mut parts: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let part = entry?.path();
        let name = part
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.starts_with("history.") && name != "history.jsonl" {
            parts.push(part);
        }
    }
    parts.sort();
    for part in parts {
        let bytes = fs::read(&part)?;
        // A process that was killed leaves half a line behind.
        let end = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        io::Write::write_all(&mut whole, &bytes[..end])?;
        fs::remove_file(part)?;
    }
    let judge = env::current_exe()?.with_file_name("torture-judge");
    let status = Command::new(judge).arg(&path).status()?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(Error::other(format!("the judge failed: {status}"))),
    }
}
