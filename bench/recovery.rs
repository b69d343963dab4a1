//! The recovery scan of very many hashes that could be locks, which were there before the
//! module, while some of them change, end and are renamed: how long another client waits
//! for the server, and how much of a core it takes.
//!
//! The module does not say how long its slices were, so this looks from outside: how long
//! the server had a processor during one PING, which other work on the machine does not
//! disturb. It does so for some seconds at a time, and takes the middle of what came out,
//! for a PING that had to wait for a processor itself can see several slices. What is seen
//! is compared with the same server under the same load when the scan is over, which pays
//! for the key events that rlock observes, too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::held;
use crate::load::{command, Connection, Expect, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};
use crate::waits::{beside, middle, Waits};

/// A slice is no longer than this, in ms.
const TARGET_MS: f64 = 1.0;

/// The scan takes no more than so many percent of a core.
const TARGET_SHARE: f64 = 5.0;

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
        let taking = watch(&server, &mut control, window, |taking, _| taking)?;
        let enough = taking.windows.len().min(10);
        let after = watch(&server, &mut control, window, |_, done| done < enough)?;
        Ok((taking, after))
    })?;
    all_are_found(&mut control, left)?;

    let columns = [
        "PING every ms",
        "n",
        "seconds",
        "p99.9 ms",
        "longest ms",
        "server at it, ms",
        "at most",
        "target",
        "",
        "% of a core",
        "target",
        "",
    ];
    let mut table = Table::new("Recovery scan of many hashes", &columns);
    let mut row = taking.row("recovery scan", count);
    let most = ((after.slice() + TARGET_MS) * 10.0).ceil() / 10.0;
    let slice = report.judge(
        "slice of the recovery scan, ms",
        taking.slice(),
        Target::AtMost(most),
    );
    row.splice(7..7, slice);
    let most = (after.percent() + TARGET_SHARE).ceil();
    row.extend(report.judge(
        "core for the recovery scan, %",
        taking.percent(),
        Target::AtMost(most),
    ));
    table.row(row);
    let mut row = after.row("the same load after it", left);
    row.splice(7..7, [String::new(), String::new()]);
    table.row(row);
    let window = window.as_secs_f64();
    table.note(format!("All {left} hashes that were left at the end were found. The load: 1,000 times a second one is"));
    table.note(
        "changed, deleted, renamed, or given an end that is far or near. Server at it: the longest",
    );
    table.note(
        "that it had a processor during one PING; a slice is a part of that, and the median over",
    );
    table.note(format!(
        "windows of {window} s is judged. The longest PING and what stands under at most are of all,"
    ));
    table.note("without what the server and the client stood in line for a processor.");
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

    /// The longest that the server was at something, in most windows.
    fn slice(&self) -> f64 {
        middle(&self.windows, Waits::most_work)
    }

    fn row(&self, name: &str, number: usize) -> Vec<String> {
        let most = |of: fn(&Waits) -> f64| self.windows.iter().map(of).fold(0.0, f64::max);
        vec![
            name.to_owned(),
            grouped(number as f64),
            format!("{:.0}", self.seconds),
            format!("{:.2}", middle(&self.windows, Waits::p999)),
            format!("{:.1}", most(Waits::longest)),
            format!("{:.2}", self.slice()),
            format!("{:.2}", most(Waits::most_work)),
            format!("{:.1}", self.percent()),
        ]
    }
}

/// Watches the server, a window after the other, for as long as `goes_on` says so, which
/// gets whether the scan is running, and how many windows there were.
fn watch(
    server: &Server,
    control: &mut Connection,
    window: Duration,
    goes_on: impl Fn(bool, usize) -> bool,
) -> Outcome<Watched> {
    let start = Instant::now();
    let before = control.server_cpu()?;
    let mut windows = Vec::new();
    while goes_on(is_taking(control)?, windows.len()) {
        windows.push(beside(server, || {
            let end = Instant::now() + window;
            while Instant::now() < end && goes_on(is_taking(control)?, windows.len()) {
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
    Ok(control.info_number("rlock", "rlock_recovery_running")? > 0.0)
}

/// Every hash that is left was found, wherever it was when the walk came by. The server
/// itself does not know how many these are: it finds out late which leases are over.
fn all_are_found(control: &mut Connection, left: usize) -> Outcome<()> {
    let start = Instant::now();
    loop {
        let found = control.info_number("rlock", "rlock_recovery_presumed")?;
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
