//! The cells of a row, how they stand to their targets, and which of them miss those.

use std::collections::HashMap;

use super::crowd::Crowd;
use super::figures::{growth, Figures, Measured, Sized, Timed};
use super::rows::Row;
use crate::report::{grouped, Report, Target};

/// A piece grows by no more than this, beyond the logarithm of n.
const GROWTH: f64 = 2.0;

/// A PING waits no longer than this, in ms, beyond the like.
const TARGET_MS: f64 = 10.0;

/// So often time is measured, until it is within its target: for a stall is there each time, and
/// a busy machine's is not.
const TURNS: usize = 3;

/// So many times its target.
const HOPELESS: f64 = 1.5;

/// What time says of a row.
struct Compared {
    /// With fewer and with the most, where no instructions tell.
    us: Sized,
    ping: f64,
    like: f64,
}

/// What is known of the table so far.
#[derive(Default)]
pub struct Cells {
    /// The longest PING beside each like, with so many, in ms: the least of some turns.
    likes: HashMap<(&'static str, usize), f64>,
    judged: usize,
    missed: Vec<(String, f64, Target)>,
}

impl Cells {
    /// The columns behind the sizes.
    pub const COLUMNS: [&'static str; 10] = [
        "us, fewer",
        "us, most",
        "growth",
        "target",
        "",
        "PING ms",
        "beside",
        "PING ms",
        "target",
        "",
    ];

    /// A row of the table, its name first.
    pub fn of(
        &mut self,
        (crowd, row): (&Crowd, &Row),
        counted: Measured<Sized>,
        timed: Measured<Timed>,
        (figures, report): (&Figures<'_>, &Report),
    ) -> Vec<String> {
        let name = row.name(crowd);
        let mut cells = vec![name.clone()];
        let mut steps = vec![0.0];
        match &counted {
            Ok(counts) => {
                cells.extend(counts.iter().map(|(_, count)| grouped(*count)));
                steps.push(growth(counts));
            }
            Err(error) => cells.push(self.failed(&name, error)),
        }
        cells.resize(figures.sizes.len() + 1, "-".into());
        let timed = timed.and_then(|timed| self.until_within(row, crowd, timed, figures));
        if let Ok(Compared { us, .. }) = &timed {
            cells.extend(us.iter().map(|(_, us)| format!("{us:.2}")));
            steps.push(growth(us));
        }
        cells.resize(figures.sizes.len() + 3, "-".into());
        let growth = steps.into_iter().fold(0.0, f64::max);
        cells.push(format!("{growth:.2}"));
        cells.extend(self.judge(
            format!("growth: {name}"),
            growth,
            Target::AtMost(GROWTH),
            report,
        ));

        match timed {
            Ok(Compared { ping, like, .. }) => {
                let most = Target::AtMost(((like + TARGET_MS) * 10.0).ceil() / 10.0);
                cells.push(format!("{ping:.1}"));
                cells.push(row.like.name.to_owned());
                cells.push(format!("{like:.1}"));
                cells.extend(self.judge(format!("PING: {name}"), ping, most, report));
            }
            Err(error) => cells.push(self.failed(&name, &error)),
        }
        cells
    }

    /// Beside the like and with fewer; the same again while it misses a target: the least of all.
    fn until_within(
        &mut self,
        row: &Row,
        crowd: &Crowd,
        mut timed: Timed,
        figures: &Figures<'_>,
    ) -> Measured<Compared> {
        let fewer = figures.timed_with_fewer(crowd, row)?;
        let most = figures.most_of(crowd) as f64;
        let sized = |timed: Timed| fewer.map_or(Vec::new(), |fewer| vec![fewer, (most, timed.us)]);
        let mut like = self.like(row, crowd, figures, false)?;
        for turn in 1..figures.turns(TURNS) {
            let excess = timed.ping / (like + TARGET_MS);
            let is_slow = excess > 1.0;
            if !is_slow && growth(&sized(timed)) <= GROWTH {
                break;
            }
            // What is so far from it that it missed it twice will miss it again.
            if turn > 1 && excess > HOPELESS {
                break;
            }
            for again in figures.timed(crowd, &[row]) {
                timed = timed.least(again?);
            }
            if is_slow {
                like = self.like(row, crowd, figures, true)?;
            }
        }
        Ok(Compared {
            us: sized(timed),
            ping: timed.ping,
            like,
        })
    }

    fn like(
        &mut self,
        row: &Row,
        crowd: &Crowd,
        figures: &Figures<'_>,
        anew: bool,
    ) -> Measured<f64> {
        let key = (row.like.name, figures.size_of_like(row, crowd));
        let known = self.likes.get(&key).copied();
        if let Some(known) = known.filter(|_| !anew) {
            return Ok(known);
        }
        let ping = figures.like(row, crowd);
        let ping = ping.map_err(|error| format!("{}: {error}", row.like.name))?;
        let ping = ping.min(known.unwrap_or(f64::MAX));
        self.likes.insert(key, ping);
        Ok(ping)
    }

    fn judge(&mut self, what: String, value: f64, target: Target, report: &Report) -> [String; 2] {
        self.judged += 1;
        if !target.is_reached(value) {
            self.missed.push((what, value, target));
        }
        report.verdict(value, target)
    }

    /// The rest of the table is measured all the same.
    fn failed(&mut self, name: &str, error: &str) -> String {
        self.judged += 1;
        self.missed
            .push((format!("failed: {name}"), 1.0, Target::AtMost(0.0)));
        format!("failed: {error}")
    }

    /// Those that miss their targets: as a list, and among all targets.
    pub fn list(self, report: &mut Report) {
        let count = self.missed.len();
        let verdicts = format!("{count} of {} cells miss their targets", self.judged);
        let names = self.missed.iter().map(|(what, value, target)| {
            let [target, _] = report.verdict(*value, *target);
            format!("\n- {what}: {value:.1} ({target})")
        });
        let names: String = names.collect();
        let colon = if count == 0 { "." } else { ":\n" };
        report.say(&format!("{verdicts}{colon}{names}"));
        report.judge("crowds: cells that miss", count as f64, Target::AtMost(0.0));
        for (what, value, target) in self.missed {
            report.judge(&what, value, target);
        }
    }
}
