//! What a server has written to its AOF.

use std::fs;

use super::Server;

/// A server with these options writes to it at once.
pub const AOF: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// The commands in it, as they are, but for SELECT.
#[track_caller]
pub fn aof(server: &Server) -> Vec<Vec<String>> {
    let dir = server.dir().join("appendonlydir");
    let mut files: Vec<_> = fs::read_dir(dir)
        .expect("an AOF")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.to_string_lossy().ends_with(".incr.aof"))
        .collect();
    files.sort();
    let bytes = fs::read(files.last().expect("an incremental file")).expect("its bytes");
    let content = String::from_utf8(bytes).expect("text only in these tests");
    let mut lines = content.split("\r\n");
    let mut commands = Vec::new();
    while let Some(count) = lines.next().and_then(|line| line.strip_prefix('*')) {
        let count: usize = count.parse().expect("a count");
        let words: Vec<String> = (0..count)
            .filter_map(|_| lines.nth(1).map(str::to_owned))
            .collect();
        if !words[0].eq_ignore_ascii_case("SELECT") {
            commands.push(words);
        }
    }
    commands
}
