//! How long others wait while the server is at a long piece of work: the longest
//! round trip of a PING beside it, and beside the like of it on a server without
//! the module.

mod ours;
mod theirs;

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::held;
use crate::load::{command, Connection, Expect, Load, Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};
use crate::stats::median;
use crate::waits::Pinger;

/// A PING beside rlock's work waits no longer than this, in ms, beyond the like.
const TARGET_MS: f64 = 10.0;

/// One piece of work of a size, and the like of it without the module.
struct Case {
    name: &'static str,
    like: &'static str,
    full: usize,
    quick: usize,
    ours: fn(&Options, usize) -> Outcome<f64>,
    theirs: fn(&Options, usize) -> Outcome<f64>,
}

const CASES: [Case; 10] = [
    Case {
        name: "RELEASE to one of an owner's n requests",
        like: "LPUSH to one of n who BLPOP",
        full: 8_000,
        quick: 500,
        ours: ours::one_owner,
        theirs: theirs::one_of_many,
    },
    Case {
        name: "DEL of a name of n bytes like a lease key's",
        like: "the same",
        full: 1_000_000,
        quick: 100_000,
        ours: ours::long_name,
        theirs: theirs::long_name,
    },
    Case {
        name: "n DELs on a writable replica, after a RENAME",
        like: "the same",
        full: 60_000,
        quick: 2_000,
        ours: ours::replica,
        theirs: theirs::replica,
    },
    Case {
        name: "close of a connection with n watchdog holds",
        like: "UNLINK of n hashes in one command",
        full: 20_000,
        quick: 1_000,
        ours: ours::close,
        theirs: theirs::unlink,
    },
    Case {
        name: "FLUSHALL of n locks",
        like: "FLUSHALL of n hashes with a TTL",
        full: 100_000,
        quick: 5_000,
        ours: ours::flush,
        theirs: theirs::flush,
    },
    Case {
        name: "SWAPDB with n locks",
        like: "SWAPDB with n hashes with a TTL",
        full: 100_000,
        quick: 5_000,
        ours: ours::swap,
        theirs: theirs::swap,
    },
    Case {
        name: "n leases with a waiter each end in one ms",
        like: "LPUSH to n who BLPOP, in one transaction",
        full: 8_000,
        quick: 500,
        ours: ours::leases,
        theirs: theirs::many_of_many,
    },
    Case {
        name: "n leases end while the server stands still for 400 ms",
        like: "n hashes with a TTL, the same",
        full: 60_000,
        quick: 2_000,
        ours: ours::behind_a_stop,
        theirs: theirs::behind_a_stop,
    },
    Case {
        name: "FORCE with n waiting readers",
        like: "LPUSH of n to n who BLPOP",
        full: 5_000,
        quick: 500,
        ours: ours::readers,
        theirs: theirs::all_of_many,
    },
    Case {
        name: "n MACQUIREs of 1,024 keys, pipelined",
        like: "n scripts that lock 1,024 keys, pipelined",
        full: 1_000,
        quick: 20,
        ours: ours::many_keys,
        theirs: theirs::many_keys,
    },
];

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let columns = ["", "n", "PING, ms", "beside", "PING, ms", "target", ""];
    let mut table = Table::new("Stalls", &columns);
    let turns = options.count(3, 1);
    for case in CASES {
        let size = options.count(case.full, case.quick);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            ours.push((case.ours)(options, size)?);
            theirs.push((case.theirs)(options, size)?);
        }
        let (ours, theirs) = (median(&ours), median(&theirs));
        let most = (theirs + TARGET_MS).ceil();
        let [target, verdict] = report.judge(case.name, ours, Target::AtMost(most));
        table.row([
            case.name.to_owned(),
            grouped(size as f64),
            format!("{ours:.1}"),
            case.like.to_owned(),
            format!("{theirs:.1}"),
            target,
            verdict,
        ]);
    }
    table.note("The longest round trip of a PING from before the work begins until it is done,");
    table.note("and beside the like on a server without the module: medians of three in turns,");
    table
        .note("less what the server and the client stood in line for a processor that others had.");
    report.print(&table);
    Ok(())
}

/// The longest PING, in ms, while `work` runs and until `is_done` says so.
fn beside(
    server: &Server,
    work: impl FnOnce(&mut Connection) -> Outcome<()>,
    is_done: impl Fn(&mut Connection) -> Outcome<bool>,
) -> Outcome<f64> {
    let mut control = server.connect()?;
    let pinger = Pinger::start(server, Duration::ZERO)?;
    thread::sleep(Duration::from_millis(50));
    work(&mut control)?;
    while !is_done(&mut control)? {
        thread::sleep(Duration::from_millis(2));
    }
    Ok(pinger.waits()?.longest())
}

/// Waits until so many clients are blocked.
pub fn until_blocked(control: &mut Connection, count: usize) -> Outcome<()> {
    while blocked(control)? < count {}
    Ok(())
}

pub fn blocked(control: &mut Connection) -> Outcome<usize> {
    Ok(control.info_number("clients", "blocked_clients")? as usize)
}

/// So many connections, each with one request outstanding.
pub fn outstanding(
    server: &Server,
    count: usize,
    request: impl Fn(usize) -> Vec<u8>,
) -> Outcome<Vec<Connection>> {
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        let mut client = server.connect_small()?;
        client.send(&request(number))?;
        clients.push(client);
    }
    Ok(clients)
}

/// The server stands still while the TTLs of `count` keys end, and goes on until all have gone.
fn behind_a_stop(server: &Server, control: &mut Connection, count: usize) -> Outcome<f64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let at = now + Duration::from_secs(2);
    let ms = at.as_millis().to_string();
    let end = |number| command(&["PEXPIREAT", &held::name(number), &ms]);
    let ends: Vec<Vec<u8>> = (0..count).map(end).collect();
    Load::new(64, &ends, &[Expect::Integer]).run_once(control)?;
    let begins = at - Duration::from_millis(100);
    let left = begins.saturating_sub(SystemTime::now().duration_since(UNIX_EPOCH)?);
    thread::sleep(left);
    beside(
        server,
        |_| server.stands_still(Duration::from_millis(400)),
        |control| Ok(control.call(&["DBSIZE"])? == b":0\r\n"),
    )
}

/// A name of `length` bytes that has the form of a lease key's.
fn like_a_lease_key(length: usize) -> String {
    let end = format!("{}o:rwlock_timeout:1", ":".repeat(510));
    let start = length.saturating_sub(end.len() + 2);
    format!("{{{}}}{end}", "x".repeat(start))
}

/// The requests, one after the other, and as many replies.
fn pipeline(connection: &mut Connection, requests: &[Vec<u8>]) -> Outcome<()> {
    connection.send(&requests.concat())?;
    for _ in requests {
        connection.reply()?;
    }
    Ok(())
}
