//! A server in a folder of its own, which may be started there again.

use std::fs;
use std::io::{self, Error};
use std::path::Path;

use crate::clock::within;
use crate::conn::ask;
use crate::resp::Value;
use crate::server::{words, Server};

/// Starts one, and waits until it has loaded what is in its folder.
pub fn start(dir: &Path, options: &str) -> io::Result<Server> {
    let mut all = words("--databases 2 --enable-debug-command yes --repl-timeout 20");
    all.extend(words("--auto-aof-rewrite-percentage 0"));
    all.extend(words(options).into_iter().filter(|word| !word.is_empty()));
    let mut last = Error::other("no start");
    for _ in 0..3 {
        let server = match Server::start(dir, &all) {
            Ok(server) => server,
            Err(error) => {
                last = error;
                continue;
            }
        };
        // Another program's server may have had the port first.
        let is_ours = || {
            let found = ask(server.port, "CONFIG GET dir").ok();
            let found = found.and_then(|reply| reply.array().get(1)?.text().map(str::to_owned));
            found.is_some_and(|found| Path::new(&found) == dir)
        };
        let loaded = || info(server.port, "persistence", "loading") == "0" && is_ours();
        if within(30_000, loaded) {
            return Ok(server);
        }
        last = Error::other(format!("no load: {}", server.log()));
    }
    Err(last)
}

/// One field; empty if the server does not say.
pub fn info(port: u16, section: &str, field: &str) -> String {
    let reply = ask(port, &format!("INFO {section}"));
    let text = reply
        .as_ref()
        .ok()
        .and_then(Value::text)
        .unwrap_or_default();
    let own = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == field).then(|| value.to_owned())
    });
    own.unwrap_or_default()
}

pub fn number(port: u16, section: &str, field: &str) -> u64 {
    info(port, section, field).parse().unwrap_or(0)
}

/// Lines in the log that no server should write.
pub fn faults(server: &Server) -> Vec<String> {
    let marks = [
        "panicked",
        "rlock: a fault",
        "server refused",
        "BUG REPORT",
        "ASSERTION",
    ];
    let log = server.log();
    let bad = log
        .lines()
        .filter(|line| marks.iter().any(|mark| line.contains(mark)));
    bad.map(str::to_owned).collect()
}

pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if let Some(name) = path.file_name() {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
