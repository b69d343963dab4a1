//! Crowds of blocked and of queued waiters, beside PING.
//!
//! The two differ only in the way of waiting: the same owners, lease and lock, RELEASE
//! and the next ACQUIRE in one write, by the connection that was notified of the grant, as a
//! program would do it. So the reply to RELEASE and the grant come on two connections to
//! blocked waiters, on one to queued ones: that is a part of what a session saves. Each way has a
//! server of its own, for who has sessions does not have the connections besides.

use super::duel::{Duel, Figures, Side};
use super::{micros, Way};
use crate::load::{self, Outcome};
use crate::options::Options;
use crate::picture::{self, Lines, Series};
use crate::report::{grouped, Report, Table, Target};
use crate::stats::{median, ratios};
use crate::targets::{self, NO_LEAST};

/// How many contend.
const CROWDS: [usize; 5] = [2, 10, 100, 1_000, 5_000];

/// Files that a server or this process has open besides.
const OTHER_FILES: usize = 100;

/// Of which crowd the spread of the grants has a target.
const JUDGED: usize = 1_000;

/// The last two need the least module.
const WAYS: [Way; 4] = [Way::Block, Way::Queue, Way::Least, Way::LeastReplicated];
const NAMES: [&str; 4] = ["blocked", "queued", "least", "least, replicating"];
const OURS: [&str; 2] = ["blocked", "queued"];

const NOTES: [&str; 13] = [
    "Blocked waiters have a connection each, queued ones a RESP3 connection for all,",
    "which sends the RELEASEs too; a server each. A contender sends its RELEASE and its next",
    "ACQUIRE in one write; one client thread serves them all. PING goes through the same loop on",
    "one more connection of the same server. All take turns; rates, times of the server's",
    "processor (INFO cpu) and ratios are medians over the turns. A hand-over cannot be faster",
    "than a round trip, since the holder has to learn of its grant before it can release. The",
    "server reads two commands and writes two replies in a hand-over, in a PING one; the ratio",
    "compares the time it takes for all that with the time of one PING. In the kernel: of that",
    "the part that sockets and the pipe for unblocked clients take, a mean, by samples.",
    "Least: the least module that can hand a lock on, which is a hash, blocked clients and a",
    "queue (bench/least). It has a write counted, as rlock does where nobody keeps a record of",
    "writes. Replicating: it makes the commands for replicas all the same. The target is for the",
    "server's time of blocked waiters beside the latter.",
];

const OTHER_NOTES: [&str; 5] = [
    "The same runs. From the moment a RELEASE is sent to the moment the next holder's grant is",
    "read, and the round trip of PING. Jain's index of the grants of each contender over whole",
    "rounds is 1 where all had as many, and 1 / n where one of n had them all. A double grant",
    "is a second grant seen while a holder has not sent its release, or a token that does not",
    "rise.",
];

/// Measures all sizes, prints and draws; gives rates by crowd.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<Series> {
    let columns = [
        "contenders",
        "by",
        "hand-overs/s",
        "of PING/s",
        "of blocked",
        "target",
        "",
        "server µs",
        "in the kernel",
        "of a PING",
        "in the kernel",
        "ratio",
        "of the least's µs",
        "of it replicating",
        "target",
        "",
    ];
    let mut rates = Table::new("Hand-over of one lock under contention", &columns);
    let columns = [
        "contenders",
        "by",
        "p50 µs",
        "p99 µs",
        "PING p50",
        "PING p99",
        "Jain",
        "target",
        "",
        "double grants",
        "target",
        "",
    ];
    let mut spread = Table::new("Hand-over of one lock: how long, and to whom", &columns);
    let mut drawn = Drawn::default();
    for crowd in CROWDS {
        if options.quick && ![2, 100].contains(&crowd) {
            continue;
        }
        let ways = match options.least {
            Some(_) => &WAYS[..],
            None => &WAYS[..2],
        };
        // All but one way have a connection for each.
        if !load::may_open((ways.len() - 1) * crowd + OTHER_FILES)? {
            rates.note(format!(
                "{crowd} connections are more than may be open (ulimit -n)."
            ));
            continue;
        }
        let duel = Duel::between(ways, options, crowd)?;
        for (name, side) in NAMES.into_iter().zip(&duel.sides) {
            rates.row(rate(crowd, name, side, &duel.sides, report));
            if OURS.contains(&name) {
                spread.row(fairness(crowd, name, side, report));
                drawn.add(crowd, &format!("rlock ({name} waiters)"), &side.hand_overs);
            }
        }
        drawn.add(crowd, "PING of one connection", &duel.sides[0].pings);
    }
    if options.least.is_none() {
        rates.note(NO_LEAST);
    }
    NOTES.iter().for_each(|note| rates.note(*note));
    OTHER_NOTES.iter().for_each(|note| spread.note(*note));
    report.print(&rates);
    report.print(&spread);
    let lines = Lines {
        title: "from RELEASE to the next holder's grant, and the round trip of a PING".into(),
        x: "contenders",
        y: "microseconds",
        series: drawn.times,
    };
    report.picture("latency", &[lines])?;
    Ok(drawn.rates)
}

/// What pictures show.
#[derive(Default)]
struct Drawn {
    rates: Series,
    times: Series,
}

impl Drawn {
    fn add(&mut self, crowd: usize, name: &str, figures: &Figures) {
        let crowd = crowd as f64;
        picture::add(&mut self.rates, name, (crowd, median(&figures.rates)));
        for (share, of) in [(0.5, "p50"), (0.99, "p99")] {
            let point = (crowd, micros(&figures.times, share));
            picture::add(&mut self.times, &format!("{name}, {of}"), point);
        }
    }
}

/// How often, and what it costs the server.
fn rate(crowd: usize, name: &str, side: &Side, all: &[Side], report: &mut Report) -> Vec<String> {
    let block = &all[0];
    let (hand_overs, pings) = (&side.hand_overs, &side.pings);
    let of_ping = median(&ratios(&hand_overs.rates, &pings.rates));
    let mut row = vec![
        grouped(crowd as f64),
        name.to_owned(),
        grouped(median(&hand_overs.rates)),
        format!("{of_ping:.2}"),
    ];
    let ratio = median(&ratios(&hand_overs.rates, &block.hand_overs.rates));
    if name == "queued" {
        let what = format!("hand-overs, queued / blocked waiters, {crowd} contenders");
        row.push(format!("{ratio:.2}"));
        row.extend(report.judge(&what, ratio, Target::AtLeast(targets::QUEUED)));
    } else {
        row.extend([String::new(), String::new(), String::new()]);
    }
    let ratio = median(&ratios(&hand_overs.costs, &pings.costs));
    for figures in [hand_overs, pings] {
        // The system tells whose time it is by samples: only of much of it.
        let kernel = figures.kernel.iter().sum::<f64>() / figures.kernel.len() as f64;
        row.extend([median(&figures.costs), kernel].map(|us| format!("{us:.1}")));
    }
    row.push(format!("{ratio:.2}"));
    if !OURS.contains(&name) {
        return row;
    }
    for (name_of_least, least) in NAMES.into_iter().zip(all).skip(OURS.len()) {
        let ratio = median(&ratios(&hand_overs.costs, &least.hand_overs.costs));
        row.push(format!("{ratio:.2}"));
        if name == "blocked" && name_of_least == "least, replicating" {
            let what = format!("server time of a hand-over / of the least's, {crowd} contenders");
            row.extend(report.judge(&what, ratio, Target::AtMost(targets::HAND_OVER_TIME)));
        }
    }
    row
}

/// How long it took, and who got it.
fn fairness(crowd: usize, name: &str, side: &Side, report: &mut Report) -> Vec<String> {
    let (hand_overs, pings) = (&side.hand_overs.times, &side.pings.times);
    let mut row = vec![grouped(crowd as f64), name.to_owned()];
    for times in [hand_overs, pings] {
        row.extend([0.5, 0.99].map(|share| format!("{:.1}", micros(times, share))));
    }
    row.push(format!("{:.4}", side.evenness));
    if crowd == JUDGED {
        let what = format!("Jain's index of grants, {name} waiters, {crowd} contenders");
        row.extend(report.judge(&what, side.evenness, Target::AtLeast(0.999)));
    } else {
        row.extend([String::new(), String::new()]);
    }
    let violations = side.violations as f64;
    let what = format!("double grants, {name} waiters, {crowd} contenders");
    row.push(grouped(violations));
    row.extend(report.judge(&what, violations, Target::AtMost(0.0)));
    row
}
