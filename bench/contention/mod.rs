//! One lock that many want: how fast it changes hands beside the round trips of PING, how
//! long that takes, who gets it, and beside other ways to lock.

mod contest;
mod crowds;
mod duel;
mod latency;
mod peers;
mod pings;
mod throng;

use hdrhistogram::Histogram;

use crate::load::Outcome;
use crate::options::Options;
use crate::report::Report;

pub use contest::{Contest, Way};
pub use duel::Duel;

/// Measures all of it and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    crowds::measure(options, report)?;
    latency::measure(options, report)?;
    peers::measure(options, report)?;
    throng::measure(options, report)
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
