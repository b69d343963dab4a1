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
    let mut rest = &bytes[..];
    let mut commands = Vec::new();
    while let Some(count) = number(&mut rest, b'*') {
        let words: Vec<String> = (0..count).map(|_| word(&mut rest)).collect();
        if !words[0].eq_ignore_ascii_case("SELECT") {
            commands.push(words);
        }
    }
    commands
}

/// The number in the next line, which begins so.
fn number(rest: &mut &[u8], first: u8) -> Option<usize> {
    let line = rest.strip_prefix(&[first])?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    *rest = &line[end + 2..];
    std::str::from_utf8(&line[..end]).ok()?.parse().ok()
}

/// The next argument. The payload of RESTORE is what it says of a hash with one field.
fn word(rest: &mut &[u8]) -> String {
    let len = number(rest, b'$').expect("a length");
    let (word, behind) = rest.split_at(len);
    *rest = &behind[2..];
    if let [4, 1, hash @ ..] = word {
        return shown(hash);
    }
    String::from_utf8(word.to_vec()).expect("text only in these tests")
}

/// The field and the value of a hash in the server's format, of fewer than 64 bytes each.
fn shown(hash: &[u8]) -> String {
    let (field, rest) = hash[1..].split_at(hash[0].into());
    let value = &rest[1..][..rest[0].into()];
    let [field, value] = [field, value].map(String::from_utf8_lossy);
    format!("{{{field}: {value}}}")
}
