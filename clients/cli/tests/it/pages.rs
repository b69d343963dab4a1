//! The pages of docs/how-to: what they show of the command line runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::server::{Server, dies_with_us};
use crate::tool::Notes;

/// What the pages have run under a lock.
const PROGRAMS: [&str; 3] = ["report.sh", "train", "serve"];

/// The blocks of a page whose language is `sh`.
fn shown(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .collect()
}

#[test]
fn what_they_show_of_the_command_line_runs() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to");
    let own = Path::new(env!("CARGO_BIN_EXE_rlock")).parent().unwrap();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let notes = Notes::new();
    for name in PROGRAMS {
        fs::write(notes.path(name), "#!/bin/sh\necho ran >>ran\n").unwrap();
        fs::set_permissions(notes.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut ran = 0;
    for file in fs::read_dir(pages).unwrap() {
        let file = file.unwrap().path();
        let server = Server::start();
        for block in shown(&fs::read_to_string(&file).unwrap()) {
            let mut shell = Command::new("sh");
            shell.args(["-ec", block]).current_dir(notes.path("."));
            shell.env("PATH", &path).env("RLOCK_URL", server.address());
            dies_with_us(&mut shell);
            let status = shell.status().unwrap();
            assert!(status.success(), "{}: {status}\n{block}", file.display());
            ran += 1;
        }
    }
    assert!(ran >= 4, "{ran}");
    // Of two tries at once the job ran once; of two that wait, twice; a leader; a train.
    assert_eq!(notes.read("ran").lines().count(), 5);
}
