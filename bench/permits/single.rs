//! The only permit of a lock with the limit 1 goes from hand to hand, beside a plain lock.

use crate::contention::{Duel, Way};
use crate::load::Outcome;
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};
use crate::stats::{median, ratios};

/// How many contend.
const CROWDS: [usize; 3] = [2, 100, 1_000];

const NOTES: [&str; 4] = [
    "The contest of the hand-over, of blocked waiters, for a plain lock and with",
    "LIMIT 1; in turns, each on a server of its own. The ratio is the median over the turns.",
    "Beside the rates stands what a hand-over takes of the server's processor, which other work",
    "on the machine disturbs less.",
];

/// Measures all sizes and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let mut table = Table::new(
        "Hand-over of one permit (LIMIT 1), beside a plain lock",
        &[
            "contenders",
            "LIMIT 1/s",
            "plain/s",
            "ratio",
            "target",
            "",
            "us of a permit",
            "plain",
            "double grants",
            "target",
            "",
        ],
    );
    for crowd in CROWDS {
        let duel = Duel::between(&[Way::Permit, Way::Block], options, crowd)?;
        let [permit, plain] = [0, 1].map(|side| &duel.sides[side].hand_overs);
        let ratio = median(&ratios(&permit.rates, &plain.rates));
        let what = format!("hand-overs with LIMIT 1 / plain, {crowd} contenders");
        let speed = report.judge(&what, ratio, Target::AtLeast(0.9));
        let what = format!("double grants with LIMIT 1 or plain, {crowd} contenders");
        let violations = duel.violations() as f64;
        let safety = report.judge(&what, violations, Target::AtMost(0.0));
        let mut row = vec![
            grouped(crowd as f64),
            grouped(median(&permit.rates)),
            grouped(median(&plain.rates)),
            format!("{ratio:.2}"),
        ];
        row.extend(speed);
        row.push(format!("{:.1}", median(&permit.costs)));
        row.push(format!("{:.1}", median(&plain.costs)));
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
