//! The clients of each language, beside what its users have now.

mod crowd;
mod handover;
pub mod language;
mod pairs;
mod plain;
pub mod turns;

use language::{Language, LANGUAGES, PHP};

use crate::load::Outcome;
use crate::options::Options;
use crate::report::Report;

/// Measures all languages whose toolchain is there, and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let mut there = Vec::new();
    let mut skipped = Vec::new();
    for language in &LANGUAGES {
        match language.build(options)? {
            Ok(built) => {
                report.fact(language.name, &built.versions);
                there.push(built);
            }
            Err(why) => skipped.push(format!("skipped: {}: {why}", language.name)),
        }
    }
    handover::measure(&there, &skipped, options, report)?;
    pairs::measure(&there, options, report)?;
    crowd::measure(&there, options, report)?;
    match PHP.build(options)? {
        Ok(built) => {
            report.fact(PHP.name, &built.versions);
            there.push(built);
        }
        Err(why) => skipped.push(format!("skipped: {}: {why}", PHP.name)),
    }
    plain::measure(&there, &skipped, options, report)
}

/// A language whose programs can run.
type Built = language::Built<'static>;

/// What one side is called in a table.
fn called(language: &Language, side: &str) -> String {
    format!("{}: {side}", language.name)
}
