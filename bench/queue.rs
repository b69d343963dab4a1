//! Hand-over to those who wait by QUEUE, all on one connection, beside the same contest
//! by BLOCK on as many connections.
//!
//! The two differ only in the way of waiting: the same owners, lease and lock, RELEASE
//! and the next ACQUIRE in one write, by the connection that was told of the grant, as a
//! program would do it. So by BLOCK the reply to RELEASE and the grant come on two
//! connections, by QUEUE on one: that is a part of what a session saves. Each way has a
//! server of its own, for who has sessions does not have the connections besides; since
//! two processes of one program differ by a little, they are started anew in between.

use crate::handover::{Duel, Way};
use crate::load::{self, Outcome};
use crate::options::Options;
use crate::report::{grouped, Mark, Report, Table};
use crate::stats::{median, ratios};

/// How many contend.
const CROWDS: [usize; 4] = [2, 100, 1_000, 10_000];

/// Files that a server or this process has open besides.
const OTHER_FILES: usize = 100;

const NOTES: [&str; 5] = [
    "The contest of the hand-over above, by BLOCK on a connection for each contender, and by",
    "QUEUE on one RESP3 connection for all, which sends the RELEASEs too; in turns, each on a",
    "server of its own. The ratio is the median over the turns. Beside the rates stands what a",
    "hand-over takes of the server's processor, by QUEUE and by BLOCK, which other work on the",
    "machine disturbs less.",
];

/// Measures all sizes and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let mut table = Table::new(
        "Hand-over by QUEUE on one connection, by BLOCK on as many",
        &[
            "contenders",
            "QUEUE/s",
            "BLOCK/s",
            "ratio",
            "mark",
            "",
            "us by QUEUE",
            "by BLOCK",
            "double grants",
            "mark",
            "",
        ],
    );
    for crowd in CROWDS {
        if !load::may_open(crowd + OTHER_FILES)? {
            table.note(format!(
                "{crowd} connections are more than may be open (ulimit -n)."
            ));
            continue;
        }
        let figures = Duel::between([Way::Queue, Way::Block], options, crowd)?;
        let [queue, block] = &figures.sides;
        let ratio = median(&ratios(&queue.rates, &block.rates));
        let what = format!("hand-overs by QUEUE / BLOCK, {crowd} contenders");
        let speed = report.judge(&what, ratio, Mark::AtLeast(0.95));
        let what = format!("double grants by QUEUE or BLOCK, {crowd} contenders");
        let violations = figures.violations as f64;
        let safety = report.judge(&what, violations, Mark::AtMost(0.0));
        let mut row = vec![
            grouped(crowd as f64),
            grouped(median(&queue.rates)),
            grouped(median(&block.rates)),
            format!("{ratio:.2}"),
        ];
        row.extend(speed);
        row.push(format!("{:.1}", median(&queue.costs)));
        row.push(format!("{:.1}", median(&block.costs)));
        row.push(grouped(violations));
        row.extend(safety);
        table.row(row);
    }
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}
