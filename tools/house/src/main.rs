//! `house SRC` prints each place where a rule of the source is broken, and fails if there
//! is one.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use rlock_house::{check, Sources, FLOORS};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source] = arguments.as_slice() else {
        eprintln!("usage: house SRC");
        return ExitCode::from(2);
    };
    let breaches = read(Path::new(source)).and_then(|sources| check(&sources, FLOORS));
    match breaches {
        Ok(breaches) => {
            for breach in &breaches {
                eprintln!("{source}/{breach}");
            }
            ExitCode::from(u8::from(!breaches.is_empty()))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
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
