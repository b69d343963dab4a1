//! Floods: very many who wait, blocked or queued, and very many locks, to which something
//! happens at once. How long another client waits meanwhile, beside the like of it on a server
//! without the module.

mod blocked;
mod held;
mod queued;
mod theirs;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::load::{Outcome, Server};
use crate::options::Options;
use crate::report::{Report, Table};
use crate::waits::{Comparison, Waits, COLUMNS, NOTES};

/// A PING waits no longer than this, in ms, beyond the like.
const TARGET_MS: f64 = 10.0;

type Measure = fn(&Options, usize) -> Outcome<Waits>;

/// What happens, to how many, and the like of it.
struct Case {
    name: &'static str,
    full: usize,
    ours: Measure,
    like: &'static str,
    theirs: Measure,
}

/// In short: one in so many.
const QUICK: usize = 25;

/// Blocked clients: as many as a server lets connect where nothing is set.
const BLOCKED: usize = 10_000;
const QUEUED: usize = 100_000;
/// For 1,024 locks each.
const SEVERAL: usize = 400;
const HELD: usize = 1_000_000;

const fn case(
    name: &'static str,
    full: usize,
    ours: Measure,
    like: &'static str,
    theirs: Measure,
) -> Case {
    Case {
        name,
        full,
        ours,
        like,
        theirs,
    }
}

const CASES: [Case; 21] = [
    case(
        "n blocked waiters of one lock time out at once",
        BLOCKED,
        blocked::one::time_out,
        "n BLPOP time out at once",
        theirs::time_out,
    ),
    case(
        "n blocked waiters of one lock close",
        BLOCKED,
        blocked::one::close,
        "n BLPOP close",
        theirs::close,
    ),
    case(
        "n blocked waiters of one lock, and the master turns replica",
        BLOCKED,
        blocked::one::demoted,
        "the same with n BLPOP",
        theirs::demoted,
    ),
    case(
        "n blocked waiters of n locks time out at once",
        BLOCKED,
        blocked::many::time_out,
        "n BLPOP time out at once",
        theirs::time_out,
    ),
    case(
        "n blocked waiters of n locks close",
        BLOCKED,
        blocked::many::close,
        "n BLPOP close",
        theirs::close,
    ),
    case(
        "n blocked waiters of n locks, and the master turns replica",
        BLOCKED,
        blocked::many::demoted,
        "the same with n BLPOP",
        theirs::demoted,
    ),
    case(
        "n blocked waiters of n locks are granted by FLUSHALL",
        BLOCKED,
        blocked::many::flushed,
        "LPUSH to n who BLPOP, in one transaction",
        theirs::served,
    ),
    case(
        "n queued waiters of one lock time out at once",
        QUEUED,
        queued::one::time_out,
        "a server at rest",
        theirs::rest,
    ),
    case(
        "n queued waiters of one lock, and the master turns replica",
        QUEUED,
        queued::one::demoted,
        "the same with n hashes",
        theirs::demoted_hashes,
    ),
    case(
        "n queued waiters of n locks time out at once",
        QUEUED,
        queued::many::time_out,
        "a server at rest",
        theirs::rest,
    ),
    case(
        "n queued waiters of n locks, and the master turns replica",
        QUEUED,
        queued::many::demoted,
        "the same with n hashes",
        theirs::demoted_hashes,
    ),
    case(
        "n queued waiters of n locks are granted by FLUSHALL",
        QUEUED,
        queued::many::flushed,
        "FLUSHALL of n hashes",
        theirs::flush,
    ),
    case(
        "n queued waiters of 1,024 locks each time out at once",
        SEVERAL,
        queued::several::time_out,
        "a server at rest",
        theirs::rest,
    ),
    case(
        "n queued waiters of 1,024 locks each close",
        SEVERAL,
        queued::several::close,
        "a server at rest",
        theirs::rest,
    ),
    case(
        "n queued waiters of 1,024 locks each, and the master turns replica",
        SEVERAL,
        queued::several::demoted,
        "the same with n hashes",
        theirs::demoted_hashes,
    ),
    case(
        "n leases end at random in 20 s",
        HELD,
        held::end_at_random,
        "n hashes end so",
        theirs::end_at_random,
    ),
    case(
        "FLUSHALL of n locks",
        HELD,
        held::flush,
        "FLUSHALL of n hashes",
        theirs::flush,
    ),
    case(
        "SWAPDB with n locks",
        HELD,
        held::swap,
        "SWAPDB with n hashes",
        theirs::swap,
    ),
    case(
        "FLUSHALL of n holds with NOTIFY",
        QUEUED,
        held::flush_notified,
        "FLUSHALL of n hashes",
        theirs::flush,
    ),
    case(
        "close with n holds with WATCHDOG",
        QUEUED,
        held::close,
        "a server at rest",
        theirs::rest,
    ),
    case(
        "the leases of n owners of permits end in one ms",
        QUEUED,
        held::permits_end,
        "a hash of n fields ends",
        theirs::hash_ends,
    ),
];

/// Measures on fresh servers and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let mut table = Table::new("Floods", &COLUMNS);
    for case in CASES {
        let count = options.count(case.full, case.full / QUICK);
        let mut both = Comparison::new(case.name, count, case.like, TARGET_MS);
        for _ in 0..options.count(3, 1) {
            both.ours((case.ours)(options, count)?);
            both.theirs((case.theirs)(options, count)?);
        }
        both.print(&mut table, report);
    }
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}

fn ours(options: &Options) -> Outcome<Server> {
    Server::start(&options.server, options.module.as_deref())
}

/// Long enough for everything here, ms.
const LONG: &str = "600000";

/// Since 1970, ms.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// The same moment for all, so many ms from now: how long it is until then.
fn until_in(ms: i64) -> impl Fn() -> i64 {
    let at = now_ms() + ms;
    move || (at - now_ms()).max(1)
}
