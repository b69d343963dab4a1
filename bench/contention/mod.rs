//! One lock that many want: how fast it changes hands beside the round trips of PING, how
//! long that takes, who gets it, and beside other ways to lock.

mod contest;
mod crowds;
mod duel;
mod latency;
mod peers;
mod pings;
mod throng;
mod waited;

use hdrhistogram::Histogram;

use crate::load::Outcome;
use crate::options::Options;
use crate::picture::{Bars, Lines, Series};
use crate::report::Report;

pub use contest::{Contest, Way};
pub use duel::Duel;

/// Measures all of it and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let crowds = crowds::measure(options, report)?;
    latency::measure(options, report)?;
    let peers = peers::measure(options, report)?;
    draw(crowds, peers, report)?;
    throng::measure(options, report)
}

/// Of so many contenders there are bars, too: all are measured with so many.
const BARS: f64 = 100.0;

/// All ways to lock in one picture.
fn draw(crowds: Series, peers: Series, report: &mut Report) -> Outcome<()> {
    let mut series = crowds;
    for (name, points) in peers {
        // What rlock came to in turns with the peers stands for it where there is both.
        let known = series.iter_mut().find(|(known, _)| *known == name);
        match known {
            Some((_, known)) => {
                known.retain(|point| points.iter().all(|other| other.0 != point.0));
                known.extend(points);
                known.sort_by(|one, other| one.0.total_cmp(&other.0));
            }
            None => series.push((name, points)),
        }
    }
    let at = |points: &[(f64, f64)]| points.iter().find(|point| point.0 == BARS).copied();
    let bars = series.iter().filter_map(|(name, points)| {
        let (_, rate) = at(points)?;
        Some((name.clone(), rate))
    });
    let bars = Bars {
        title: format!("hand-overs of one lock per second, {BARS} contend"),
        bars: bars.collect(),
    };
    report.picture("hand-overs-100", &[bars])?;
    let lines = Lines {
        title: "hand-overs of one lock per second".into(),
        x: "contenders",
        y: "hand-overs per second",
        series,
    };
    report.picture("hand-overs", &[lines])
}

/// Times in ns, up to a minute, each to a thousandth.
fn times() -> Outcome<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000_000, 3)?)
}

/// The time, in µs, that this share of them does not exceed.
fn micros(times: &Histogram<u64>, share: f64) -> f64 {
    times.value_at_quantile(share) as f64 / 1e3
}

/// How evenly grants are spread (Jain's index): 1 where all have as many, 1 / n where one
/// of n has them all.
fn evenness(grants: &[u64]) -> f64 {
    let sum: f64 = grants.iter().map(|&count| count as f64).sum();
    let squares: f64 = grants.iter().map(|&count| (count as f64).powi(2)).sum();
    sum * sum / (grants.len() as f64 * squares)
}
