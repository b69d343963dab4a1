//! The judge: reads a history, and says what in it cannot be if the documentation is
//! true. It knows nothing of rlock's code. It allows what it cannot be sure of.

mod answers;
mod cancels;
mod clocks;
mod closes;
mod copies;
mod counts;
mod drawing;
mod exclusion;
mod finding;
mod holds;
mod idle;
mod listed;
mod losses;
mod messages;
mod once;
mod order;
mod past;
mod permits;
mod report;
mod request;
mod rough;
mod silent;
mod strict;
#[cfg(test)]
mod tests;
mod tokens;
mod told;
mod wanted;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use rlock_torture::history;

use finding::Findings;
use past::Past;

fn main() -> ExitCode {
    let Some(path) = env::args().nth(1) else {
        eprintln!("torture-judge HISTORY");
        return ExitCode::from(2);
    };
    let past = match history::read(Path::new(&path)) {
        Ok(records) => Past::new(records),
        Err(error) => {
            eprintln!("torture-judge: {error}");
            return ExitCode::from(2);
        }
    };
    let found = judge(&past);
    report::print(&past, &found);
    if let Err(error) = report::write(&past, &found, Path::new(&path)) {
        eprintln!("torture-judge: {error}");
        return ExitCode::from(2);
    }
    if !found.all.is_empty() {
        match drawing::draw(&past, &found, Path::new(&path)) {
            Ok(drawn) => println!("drawn: {}", drawn.display()),
            Err(error) => eprintln!("torture-judge: it could not be drawn: {error}"),
        }
    }
    match found.all.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn judge(past: &Past) -> Findings {
    let mut found = Findings::default();
    exclusion::check(past, &mut found);
    permits::check(past, &mut found);
    order::check(past, &mut found);
    tokens::check(past, &mut found);
    answers::check(past, &mut found);
    idle::check(past, &mut found);
    messages::check(past, &mut found);
    losses::check(past, &mut found);
    silent::check(past, &mut found);
    wanted::check(past, &mut found);
    cancels::check(past, &mut found);
    once::check(past, &mut found);
    listed::check(past, &mut found);
    counts::check(past, &mut found);
    copies::check(past, &mut found);
    found
}
