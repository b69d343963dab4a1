//! `house list src` prints each place where a rule of the source is broken, and the
//! count for each rule. `house check src FILE` fails where a rule is broken more often
//! than the file allows; without the file nothing is allowed.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use rlock_house::{count, counts, Ratchet, Rule, Sources, LONG_FILES};

const USAGE: &str = "usage: house list SRC\n       house check SRC ALLOWED";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["list", source] => list(Path::new(source)),
        ["check", source, allowed] => check(Path::new(source), Path::new(allowed)),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn list(source: &Path) -> Result<bool, String> {
    let breaches = rlock_house::check(&read(source)?, LONG_FILES)?;
    for breach in &breaches {
        println!("{}/{breach}", source.display());
    }
    let counts = counts(&breaches);
    for rule in Rule::ALL {
        println!("{:<9} {}", rule.name(), count(&counts, rule));
    }
    Ok(true)
}

fn check(source: &Path, allowed: &Path) -> Result<bool, String> {
    let breaches = rlock_house::check(&read(source)?, LONG_FILES)?;
    let text = match fs::read_to_string(allowed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| format!("{}: {error}", allowed.display())),
    };
    let ratchet = Ratchet::parse(&text?)?;
    let counts = counts(&breaches);
    let overrun = ratchet.overrun(&counts);
    for breach in breaches.iter().filter(|it| overrun.contains(&it.rule)) {
        eprintln!("{}/{breach}", source.display());
    }
    for &rule in &overrun {
        let (now, most) = (count(&counts, rule), ratchet.allowed(rule));
        eprintln!("the rule {} is broken {now} times, not {most}", rule.name());
    }
    for rule in ratchet.slack(&counts) {
        let now = count(&counts, rule);
        let file = allowed.display();
        println!(
            "write {now} for {} into {file}: it has become less",
            rule.name()
        );
    }
    Ok(overrun.is_empty())
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
