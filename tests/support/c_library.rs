//! Libraries in C that a server is to load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// Compiles a file of the repository. Two runs at once have one and the same.
pub fn library(source: &str, name: &str, with: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let built = |name: String| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let made = built(format!("{name}-{}.so", process::id()));
    let library = built(format!("{name}.so"));
    let compiler = std::env::var_os("CC").unwrap_or("cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-o"]);
    command.arg(&made).arg(&source).args(with);
    let status = command.status().expect("a C compiler");
    assert!(status.success(), "{}: {status}", source.display());
    fs::rename(&made, &library).expect("the library in its place");
    library
}
