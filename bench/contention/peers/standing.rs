//! What one way to lock came to in one crowd, beside rlock, and the target for that.

use std::time::Duration;

use crate::picture::{self, Series};
use crate::report::{grouped, Report, Target};
use crate::stats::{median, ratios};

/// Turn by turn.
pub struct Standing {
    pub name: String,
    pub crowd: usize,
    /// A second.
    pub hand_overs: Vec<f64>,
    /// A second, where they are known: with those to the same one again.
    pub grants: Vec<f64>,
    /// What rlock came to beside each of its turns; none: this is rlock.
    pub ours: Vec<f64>,
    pub evenness: Option<f64>,
    pub costs: Option<Costs>,
}

/// What hand-overs cost, over all turns.
pub struct Costs {
    /// Commands that clients send for one, and microseconds of the server's processor.
    pub commands: f64,
    pub server: f64,
    /// The longest that one waited, also in vain.
    pub longest: Duration,
}

impl Standing {
    pub const COLUMNS: [&str; 11] = [
        "contenders",
        "by",
        "hand-overs/s",
        "grants/s",
        "Jain",
        "commands",
        "server µs",
        "longest ms",
        "rlock is",
        "target",
        "",
    ];

    pub fn of(name: &str, crowd: usize) -> Self {
        Standing {
            name: name.to_owned(),
            crowd,
            hand_overs: Vec::new(),
            grants: Vec::new(),
            ours: Vec::new(),
            evenness: None,
            costs: None,
        }
    }

    /// How many times as fast rlock is. A peer that is so slow that it has turns without a
    /// hand-over is judged by all of its turns.
    fn ratio(&self) -> f64 {
        if self.hand_overs.contains(&0.0) {
            let sum = |rates: &[f64]| rates.iter().sum::<f64>();
            return sum(&self.ours) / sum(&self.hand_overs);
        }
        median(&ratios(&self.ours, &self.hand_overs))
    }

    /// Its row in the table.
    pub fn row(&self, report: &mut Report) -> Vec<String> {
        let known = |rates: &[f64]| match rates {
            [] => String::new(),
            rates => figure(median(rates)),
        };
        let evenness = self.evenness.map(|index| format!("{index:.3}"));
        let mut row = vec![
            grouped(self.crowd as f64),
            self.name.clone(),
            known(&self.hand_overs),
            known(&self.grants),
            evenness.unwrap_or_default(),
        ];
        row.extend(match &self.costs {
            None => [String::new(), String::new(), String::new()],
            Some(costs) => {
                let longest = costs.longest.as_secs_f64() * 1e3;
                [costs.commands, costs.server, longest].map(figure)
            }
        });
        if !self.ours.is_empty() {
            let ratio = self.ratio();
            row.push(match ratio.is_finite() {
                true => format!("{} x", figure(ratio)),
                false => "no hand-over".to_owned(),
            });
            if let Some(least) = target(&self.name, self.crowd) {
                let what = format!("rlock / {}, {} contenders", self.name, self.crowd);
                row.extend(report.judge(&what, ratio, Target::AtLeast(least)));
            }
        }
        row
    }
}

/// How many times as fast as another rlock is to be.
fn target(name: &str, crowd: usize) -> Option<f64> {
    match (name, crowd) {
        ("Lua + pub/sub", 100) => Some(12.0),
        ("PostgreSQL advisory lock", 2) => Some(1.1),
        ("PostgreSQL advisory lock", 10) => Some(1.05),
        ("PostgreSQL advisory lock", 100) => Some(1.4),
        ("PostgreSQL advisory lock", 1_000) => Some(6.0),
        ("Redisson RLock, a client each", 2) => Some(2.4),
        ("Redisson RLock, a client each", 100) => Some(55.0),
        _ => None,
    }
}

/// Peers can be slow.
fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => grouped(value),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Hand-overs by crowd, in the order in which the names came.
pub fn series(standings: &[Standing]) -> Series {
    let mut series = Series::new();
    for standing in standings {
        let point = (standing.crowd as f64, median(&standing.hand_overs));
        picture::add(&mut series, &standing.name, point);
    }
    series
}
