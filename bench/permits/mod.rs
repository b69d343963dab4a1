//! Permits: locks that several may hold. What one with the limit 1 takes beside a plain lock,
//! what one with the limit 10 does beside Redisson's semaphore while holders are killed, and
//! what a holder takes of memory.

mod holders;
mod program;
mod single;
mod theirs;

use crate::load::Outcome;
use crate::options::Options;
use crate::report::Report;

/// Measures all three and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    single::measure(options, report)?;
    theirs::measure(options, report)?;
    holders::measure(options, report)
}
