//! The judge of rlock's clients: reads what programs asked their clients for and what came, and
//! says what in it cannot be if docs/clients.md and the clients' own pages are true. It knows
//! nothing of their code. It allows what it cannot be sure of.

mod answers;
mod exclusion;
mod finding;
mod hold;
mod left;
mod losses;
mod past;
mod report;
mod silent;
#[cfg(test)]
mod tests;
mod tokens;
mod way;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use rlock_torture::saw;

use finding::Findings;
use past::Past;

fn main() -> ExitCode {
    let Some(path) = env::args().nth(1) else {
        eprintln!("torture-clients-judge HISTORY");
        return ExitCode::from(2);
    };
    let past = match saw::read(Path::new(&path)) {
        Ok(records) => Past::new(records),
        Err(error) => {
            eprintln!("torture-clients-judge: {error}");
            return ExitCode::from(2);
        }
    };
    let found = judge(&past);
    report::print(&past, &found);
    match found.all.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn judge(past: &Past) -> Findings {
    let mut found = Findings::default();
    exclusion::check(past, &mut found);
    tokens::check(past, &mut found);
    losses::check(past, &mut found);
    silent::check(past, &mut found);
    answers::check(past, &mut found);
    left::check(past, &mut found);
    found
}
