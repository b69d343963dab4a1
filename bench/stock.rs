//! Taking stock of very many hashes that could be locks, which were there before the
//! module, while some of them change, end and are renamed: how long another client waits
//! for the server, and how much of a core it takes.
//!
//! The module does not say how long its slices were, so this looks from outside, for some
//! seconds at a time: the longest wait of most such windows tells a slice that is too long
//! from a client that was not given a processor once. The like is the same server under
//! the same load when the stock is taken, which pays for the key events that rlock hears
//! too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::held;
use crate::load::{command, Connection, Expect, Outcome, Server};
use crate::options::Options;
use crate::report::{Mark, Report, Table};
use crate::waits::{beside, Comparison, Waits, COLUMNS};

/// A PING waits no longer than this, in ms, beyond the like: a slice.
const MARK_MS: f64 = 1.0;

/// Taking stock takes no more than so many percent of a core.
const MARK_SHARE: f64 = 5.0;

/// The load pauses so long after each command.
const PAUSE: Duration = Duration::from_millis(1);

/// How long it may take until the last leases are known to be over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures on a fresh server and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = options.count(1_000_000, 20_000);
    let window = options.millis(4_000, 400);
    let module = options.module.as_deref().ok_or("there is no module")?;
    let module = module.to_str().ok_or("the module's path is no text")?;
    let server = Server::start(&options.server, None)?;
    let mut control = server.connect()?;
    held::hashes(&mut control, count)?;

    let ((taking, after), left) = under_load(&server, count, || {
        control.call(&["MODULE", "LOAD", module])?;
        let taking = watch(&server, &mut control, window, |control, _| {
            is_taking(control)
        })?;
        let enough = taking.windows.len().min(10);
        let after = watch(&server, &mut control, window, |_, done| Ok(done < enough))?;
        Ok((taking, after))
    })?;
    all_are_found(&mut control, left)?;

    let (share, share_after) = (taking.percent(), after.percent());
    let most = (share_after + MARK_SHARE).ceil();
    let [mark, verdict] = report.judge("processor for taking stock", share, Mark::AtMost(most));
    let worst = taking
        .windows
        .iter()
        .map(Waits::longest)
        .fold(0.0, f64::max);
    let worst_after = after.windows.iter().map(Waits::longest).fold(0.0, f64::max);
    let seconds = taking.seconds;
    let name = "taking stock of n hashes";
    let mut comparison = Comparison::new(name, count, "the same load after it", MARK_MS);
    taking
        .windows
        .into_iter()
        .for_each(|waits| comparison.ours(waits));
    after
        .windows
        .into_iter()
        .for_each(|waits| comparison.theirs(waits));

    let mut table = Table::new("Taking stock", &COLUMNS);
    comparison.print(&mut table, report);
    let window = window.as_secs_f64();
    table.note(format!(
        "Longest: the median over windows of {window} s; of all windows {worst:.1} ms, and {worst_after:.1} ms after it."
    ));
    table.note(format!(
        "It took {seconds:.1} s and found all {left} that were left at the end. The server used"
    ));
    table.note(format!(
        "{share:.1} % of a core, {share_after:.1} % under the same load after it (mark {mark} %: {verdict}). The load: 1,000 times"
    ));
    table
        .note("a second a hash is changed, deleted, renamed, or given an end that is far or near.");
    report.print(&table);
    Ok(())
}

/// What was seen of a server in some windows.
struct Watched {
    windows: Vec<Waits>,
    seconds: f64,
    /// Of the server's processor time.
    used: f64,
}

impl Watched {
    fn percent(&self) -> f64 {
        self.used / self.seconds * 100.0
    }
}

/// Watches the server, a window after the other, for as long as `goes_on` says so, which is
/// told how many there were.
fn watch(
    server: &Server,
    control: &mut Connection,
    window: Duration,
    goes_on: impl Fn(&mut Connection, usize) -> Outcome<bool>,
) -> Outcome<Watched> {
    let start = Instant::now();
    let before = control.server_cpu()?;
    let mut windows = Vec::new();
    while goes_on(control, windows.len())? {
        windows.push(beside(server, || {
            let end = Instant::now() + window;
            while Instant::now() < end && goes_on(control, windows.len())? {
                thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        })?);
    }
    Ok(Watched {
        windows,
        seconds: start.elapsed().as_secs_f64(),
        used: control.server_cpu()? - before,
    })
}

fn is_taking(control: &mut Connection) -> Outcome<bool> {
    Ok(control.info_number("rlock", "rlock_stock_running")? > 0.0)
}

/// Every hash that is left was found, wherever it was when the walk came by. The server
/// itself does not know how many these are: it finds out late which leases are over.
fn all_are_found(control: &mut Connection, left: usize) -> Outcome<()> {
    let start = Instant::now();
    loop {
        let found = control.info_number("rlock", "rlock_stock_presumed")?;
        if found == left as f64 {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("{found} of {left} hashes were found").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Does something while a client changes some of the hashes, each once. How many are left.
fn under_load<T>(
    server: &Server,
    count: usize,
    work: impl FnOnce() -> Outcome<T>,
) -> Outcome<(T, usize)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| -> Outcome<usize> {
            let mut client = server.connect()?;
            let mut left = count;
            for number in 0..count {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // All over the table, and never the same one twice: this is a prime.
                let change = change(number, &held::name(number * 7_919 % count));
                change.expect.check(client.exchange(&change.bytes)?)?;
                left -= usize::from(change.ends);
                thread::sleep(PAUSE);
            }
            Ok(left)
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        let left = load.join().map_err(|_| "the load panicked")?;
        Ok((result?, left?))
    })
}

/// Something that is done to a hash.
struct Change {
    bytes: Vec<u8>,
    expect: Expect,
    /// The hash is gone then, at once or in a moment.
    ends: bool,
}

fn change(number: usize, key: &str) -> Change {
    let renamed = format!("moved:{key}");
    let (words, ends): (&[&str], bool) = match number % 5 {
        0 => (&["HINCRBY", key, "holder", "1"], false),
        1 => (&["PEXPIRE", key, "700000"], false),
        2 => (&["PEXPIRE", key, "50"], true),
        3 => (&["RENAME", key, &renamed], false),
        _ => (&["DEL", key], true),
    };
    let expect = match words {
        ["RENAME", ..] => Expect::Exactly("+OK\r\n"),
        _ => Expect::Integer,
    };
    let bytes = command(words);
    Change {
        bytes,
        expect,
        ends,
    }
}
