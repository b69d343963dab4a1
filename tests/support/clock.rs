//! A wall clock that tests set: servers are started with `clock/shim.c` preloaded.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use super::library;

/// The wall clock of the servers that are started with it.
pub struct Clock {
    path: PathBuf,
    file: File,
}

impl Clock {
    /// A clock that is right.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = built(&format!("clock-{}-{count}", process::id()));
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&path).expect("a file for the clock");
        let clock = Self { path, file };
        for at in 0..3 {
            clock.put(at, 0);
        }
        clock
    }

    /// Sets it this many ms ahead of the right time, or behind it.
    pub fn set_off(&self, ms: i64) {
        self.put(0, ms * 1000);
    }

    /// The same in the moment in which the module looks at a clock next.
    pub fn set_off_at_next_look(&self, ms: i64) {
        self.put(2, ms * 1000);
    }

    /// Whether it has looked.
    pub fn has_looked(&self) -> bool {
        self.get(2) == 0
    }

    /// So many of the module's next looks at a clock fail.
    pub fn fail(&self, times: i64) {
        self.put(1, times);
    }

    /// How many are still to fail.
    pub fn to_fail(&self) -> i64 {
        self.get(1)
    }

    fn get(&self, at: u64) -> i64 {
        let mut bytes = [0; 8];
        self.file
            .read_exact_at(&mut bytes, at * 8)
            .expect("the clock");
        i64::from_ne_bytes(bytes)
    }

    fn put(&self, at: u64, number: i64) {
        let bytes = number.to_ne_bytes();
        self.file.write_all_at(&bytes, at * 8).expect("the clock");
    }

    /// What a server's environment needs for it.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("LD_PRELOAD".into(), shim().into()),
            ("RLOCK_CLOCK".into(), self.path.clone().into()),
        ]
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The shim, compiled once for a run of the tests.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| library("tests/clock/shim.c", "clock-shim", &["-ldl"]))
}
