//! The clients of each language, beside what its users have now.

mod crowd;
mod handover;
pub mod language;
mod pairs;
mod plain;
mod sticky;
pub mod turns;

use language::{Language, LANGUAGES, PHP};

use crate::load::Outcome;
use crate::options::Options;
use crate::report::Report;

/// Measures all languages whose toolchain is there, and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let (there, skipped) = build(LANGUAGES.iter(), options, report)?;
    handover::measure(&there, &skipped, options, report)?;
    pairs::measure(&there, options, report)?;
    crowd::measure(&there, options, report)
}

/// The same on a server without the module.
pub fn measure_plain(options: &Options, report: &mut Report) -> Outcome<()> {
    let languages = LANGUAGES.iter().chain([&PHP]);
    let (there, skipped) = build(languages, options, report)?;
    plain::measure(&there, &skipped, options, report)
}

/// Sticky locks.
pub fn measure_sticky(options: &Options, report: &mut Report) -> Outcome<()> {
    let (there, skipped) = build(LANGUAGES.iter(), options, report)?;
    sticky::measure(&there, &skipped, options, report)
}

/// Those that can run here, and why the others cannot.
fn build(
    languages: impl Iterator<Item = &'static Language>,
    options: &Options,
    report: &mut Report,
) -> Outcome<(Vec<Built>, Vec<String>)> {
    let (mut there, mut skipped) = (Vec::new(), Vec::new());
    for language in languages {
        match language.build(options)? {
            Ok(built) => {
                report.fact(language.name, &built.versions);
                there.push(built);
            }
            Err(why) => skipped.push(format!("skipped: {}: {why}", language.name)),
        }
    }
    Ok((there, skipped))
}

/// A language whose programs can run.
type Built = language::Built<'static>;

/// What one side is called in a table.
fn called(language: &Language, side: &str) -> String {
    format!("{}: {side}", language.name)
}
