//! `house SRC PAGE` prints each place where a rule of the source is broken, and what is to
//! become less, with its limits; it fails if there is such a place, or a count over its limit.
//! PAGE is docs/architecture.md.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use rlock_house::{check, counts, Breach, Count, Sources, FLOORS};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, page] = arguments.as_slice() else {
        eprintln!("usage: house SRC PAGE");
        return ExitCode::from(2);
    };
    match look(Path::new(source), Path::new(page)) {
        Ok((breaches, counts)) => {
            for breach in &breaches {
                eprintln!("{source}/{breach}");
            }
            println!("{:<64} {:>7} {:>7} {:>7}", "", "found", "limit", "target");
            for count in &counts {
                println!("{count}");
            }
            let fails = !breaches.is_empty() || counts.iter().any(Count::is_over);
            ExitCode::from(u8::from(fails))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn look(source: &Path, page: &Path) -> Result<(Vec<Breach>, Vec<Count>), String> {
    let sources = read(source)?;
    let wrong = |error: io::Error| format!("{}: {error}", page.display());
    let page = fs::read_to_string(page).map_err(wrong)?;
    Ok((check(&sources, FLOORS)?, counts(&sources, &page)?))
}

/// All files below a folder that end in `.rs`.
fn read(folder: &Path) -> Result<Sources, String> {
    let mut sources = Sources::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        let wrong = |error: io::Error| format!("{}: {error}", at.display());
        for entry in fs::read_dir(&at).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).map_err(wrong)?;
                let name = path.strip_prefix(folder).unwrap_or(&path);
                sources.insert(name.to_string_lossy().into_owned(), text);
            }
        }
    }
    Ok(sources)
}
