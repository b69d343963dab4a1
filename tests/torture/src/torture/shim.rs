//! A server's wall clock that can be set wrong: `tests/clock/shim.c` is preloaded into it,
//! and goes by a file. Clients and the judge have the machine's own clock.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Clock {
    path: PathBuf,
    file: File,
    shim: PathBuf,
}

impl Clock {
    /// One that is right.
    pub fn new(shim: &Path, path: PathBuf) -> io::Result<Self> {
        let file = File::create(&path)?;
        file.write_all_at(&[0; 16], 0)?;
        let shim = shim.to_owned();
        Ok(Self { path, file, shim })
    }

    /// Sets it so many ms ahead of the right time, or behind it.
    pub fn set_off(&self, ms: i64) -> io::Result<()> {
        self.file.write_all_at(&(ms * 1000).to_ne_bytes(), 0)
    }

    /// What a server's environment needs for it.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let (shim, path) = (&self.shim, &self.path);
        [
            ("LD_PRELOAD", shim.clone().into()),
            ("RLOCK_CLOCK", path.clone().into()),
        ]
    }
}

/// Compiles the library; none where there is no compiler for it.
pub fn build(dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clock/shim.c");
    let shim = dir.join("clock-shim.so");
    let mut command = Command::new(env::var_os("CC").unwrap_or("cc".into()));
    command.args(["-shared", "-fPIC", "-O1", "-o"]);
    command.arg(&shim).arg(source).arg("-ldl");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let built = command.status().is_ok_and(|status| status.success());
    built.then_some(shim)
}
