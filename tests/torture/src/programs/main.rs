//! Tortures rlock's clients: programs in their languages contend for the same locks over faulty
//! wires, and another program judges what their clients said. See docs/testing.md.

mod asked;
mod backend;
mod book;
mod build;
mod crowd;
mod driver;
mod faults;
mod library;
#[allow(dead_code)] // shared with the torture of the module
#[path = "../torture/link.rs"]
mod link;
mod locks;
mod options;
mod player;
mod process;
mod proxy;
mod raw;
mod redisson;
#[allow(dead_code)]
#[path = "../torture/resp.rs"]
mod resp;
mod rest;
mod server;
mod sticky;
mod way;

use std::fs;
use std::io::{self, Error};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::thread::{self, sleep, JoinHandle};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::saw::{Record, Round, Stall};

use backend::Servers;
use book::Book;
use build::Kind;
use crowd::{Crowd, BESIDE};
use driver::Driver;
use faults::Faults;
use library::Library;
use options::Options;
use proxy::Proxy;
use redisson::{Program, Redisson};
use server::Server;

/// Of each client so many processes.
const PROCESSES: usize = 2;
/// For how long some of them may be silent, ms: shorter than many a stop.
const PATIENCE: u64 = 800;
/// A thread of ours that comes so late says that the machine stood still, us.
const LATE: u64 = 150_000;

fn main() -> ExitCode {
    match Options::read().and_then(|options| rounds(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::from(2)
        }
    }
}

/// Rounds until the time is over; whether nothing was found.
fn rounds(options: &Options) -> io::Result<bool> {
    let mut kinds = Vec::new();
    for name in &options.clients {
        match Kind::build(name, (&options.root, &options.target), options.servers)? {
            Ok(kind) => kinds.push(Arc::new(kind)),
            Err(why) => println!("skipped: {name}: {why}"),
        }
    }
    if kinds.is_empty() {
        return Ok(true);
    }
    let mut redisson = None;
    if options.redisson {
        match Program::build(&options.root, &options.target)? {
            Ok(program) => redisson = Some(program),
            Err(why) => println!("skipped: Redisson: {why}"),
        }
    }
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut fine = true;
    for number in options.round.unwrap_or(0).. {
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        let seconds = match options.round {
            Some(_) => options.round_seconds,
            None => options.round_seconds.min(left.max(5)),
        };
        let dir = options.dir.join(format!("{}-{number}", options.seed));
        let found = !round(
            options,
            (&kinds, redisson.as_ref()),
            (number, seconds),
            &dir,
        )?;
        match found {
            true => println!("kept: {}", dir.display()),
            false => fs::remove_dir_all(&dir)?,
        }
        fine &= !found;
        let over = Instant::now() + Duration::from_secs(5) > end;
        if over || options.round.is_some() || (found && options.stop) {
            break;
        }
    }
    Ok(fine)
}

/// One round, judged; whether nothing was found.
fn round(
    options: &Options,
    (kinds, redisson): (&[Arc<Kind>], Option<&Program>),
    (number, seconds): (u32, u64),
    dir: &Path,
) -> io::Result<bool> {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir)?;
    let mut rng = Rng::with_seed(options.seed.wrapping_mul(1_000_003) + u64::from(number));
    let book = Arc::new(Book::create(&dir.join("saw.jsonl"))?);
    let servers = options.servers;
    let module = Some(options.module.as_path()).filter(|_| !servers.are_plain());
    let server = Server::start(&dir.join("server"), module)?;
    let mut drivers = Vec::new();
    for kind in kinds {
        for process in 0..PROCESSES {
            let place = drivers.len() + 1;
            let proxy = Proxy::start(place, server.port, Arc::clone(&book))?;
            // With somebody who is soon taken for silent, and somebody who is not.
            let patience = (process % 2 == 1 && module.is_some()).then_some(PATIENCE);
            let what = (kind, servers.backend(process), patience);
            let driver = Arc::new(Driver::new(place, what, proxy, &book, dir));
            driver.start()?;
            drivers.push(driver);
        }
    }
    let mut redisson = match redisson {
        Some(program) => Some(start_redisson(program, &server, dir)?),
        None => None,
    };
    describe(options, (number, seconds), &server, &drivers, &book)?;
    let stop = Arc::new(AtomicBool::new(false));
    let crowd = Crowd {
        options,
        drivers: &drivers,
        server: server.port,
        redisson: redisson.as_ref(),
        book: &book,
        stop: &stop,
    };
    let mut threads = crowd.play(&mut rng)?;
    threads.push(watch(&book, &stop));
    let plain = match servers {
        Servers::WithModule => None,
        _ => Some(Library::read(&options.root, servers.backend(0))?),
    };
    let mut faults = Faults {
        rng,
        server,
        drivers,
        plain,
        book,
        under_way: Vec::new(),
        calm_until: Instant::now(),
    };
    strike(&mut faults, seconds)?;
    faults.heal()?;
    stop.store(true, SeqCst);
    for thread in threads {
        let _ = thread.join();
    }
    if redisson.as_mut().is_some_and(Redisson::is_gone) {
        return Err(Error::other("Redisson has ended by itself"));
    }
    rest::backends(&faults);
    rest::all_free(&mut faults)?;
    drop(redisson);
    for driver in &faults.drivers {
        driver.end();
        driver.proxy.end();
    }
    rest::nothing_left(&mut faults)?;
    faults.server.kill();
    faults.book.flush()?;
    judge(dir)
}

fn describe(
    options: &Options,
    (number, seconds): (u32, u64),
    server: &Server,
    drivers: &[Arc<Driver>],
    book: &Book,
) -> io::Result<()> {
    let info = server.link()?.info("server")?;
    let field = |name: &str| info.iter().find(|(found, _)| found == name);
    let valkey = field("valkey_version").map(|(_, version)| format!("valkey {version}"));
    let redis = field("redis_version").map(|(_, version)| format!("redis {version}"));
    let names = drivers.iter().map(|driver| driver.name());
    let names = names.chain(BESIDE.map(str::to_owned));
    let names: Vec<String> = ["raw".to_owned()].into_iter().chain(names).collect();
    let clients = options.clients.join(" ");
    let (seed, servers) = (options.seed, options.servers);
    let plain = match servers.name() {
        "" => String::new(),
        name => format!(" PLAIN={name}"),
    };
    let redisson = if options.redisson { " REDISSON=1" } else { "" };
    let repeat = format!(
        "make torture CLIENTS=\"{clients}\"{plain}{redisson} SEED={seed} ROUND={number} \
         ROUND_SECONDS={seconds}"
    );
    println!("seed {seed} round {number}: {clients}{plain}{redisson}, {seconds} s");
    book.write(&Record::Round(Round {
        seed,
        round: number,
        server: valkey.or(redis).unwrap_or_default(),
        clients: options.clients.clone(),
        repeat,
        at: now_us(),
        raw: (names.len() - BESIDE.len()..names.len()).collect(),
        drivers: names,
        plain: servers.are_plain(),
    }));
    Ok(())
}

/// Its fenced locks count by counters that are there from the beginning.
fn start_redisson(program: &Program, server: &Server, dir: &Path) -> io::Result<Redisson> {
    let mut link = server.link()?;
    for key in locks::FENCED {
        link.must(&format!("SET redisson_lock_token:{{{key}}} 0"))?;
    }
    Redisson::start(program, server.port, dir)
}

/// Does what the round is about.
fn strike(faults: &mut Faults, seconds: u64) -> io::Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut next = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        faults.tend()?;
        if Instant::now() >= next {
            faults.strike()?;
            let most = 1500 / faults.drivers.len() as u64;
            next = Instant::now() + Duration::from_millis(faults.rng.u64(20..100 + most));
        }
        if faults.server.is_gone() {
            return Err(Error::other("the server has ended by itself"));
        }
        if let Some(driver) = faults.drivers.iter().find(|driver| driver.is_gone()) {
            let name = &driver.kind.name;
            return Err(Error::other(format!("a driver of {name} has ended")));
        }
        sleep(Duration::from_millis(3));
    }
    Ok(())
}

/// Notes when the machine lets us stand still.
fn watch(book: &Arc<Book>, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (book, stop) = (Arc::clone(book), Arc::clone(stop));
    thread::spawn(move || {
        while !stop.load(SeqCst) {
            let from = now_us();
            sleep(Duration::from_millis(10));
            let to = now_us();
            if to - from > LATE {
                book.write(&Record::Stall(Stall { from, to }));
            }
        }
    })
}

fn judge(dir: &Path) -> io::Result<bool> {
    let judge = std::env::current_exe()?.with_file_name("torture-clients-judge");
    let status = Command::new(judge).arg(dir.join("saw.jsonl")).status()?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(Error::other(format!("the judge failed: {status}"))),
    }
}
