//! A language, and the program in it that does the work.
//!
//! `programs/<language>/build FOLDER` brings what it needs, builds it there and says what
//! versions it has of what it uses; and
//! `programs/<language>/start FOLDER SIDE PORT WORKERS TURNS MS` starts a process: it warms up,
//! in which two workers contend for a lock of its own, for so many turns or ms; says `ready`;
//! and takes orders, each of which it answers with a number:
//!
//! - `go`: its workers begin to take one lock in turns, as often as they get it;
//! - `turns`: of each turn so far which worker had it, when it had been acquired, and when it
//!   was about to be released (ns by CLOCK_MONOTONIC), all in one line;
//! - `pairs ms`: one worker takes and releases a free lock for so long; ns each;
//! - `pings ms`: one PING after the other by the same library; ns each;
//! - `uses ms`: one worker uses a sticky lock that is its process's already for so long; ns each;
//! - `sets ms`: SET NX PX and DEL by the same library; ns for both;
//! - `often k`: from now on it takes and releases one lock, and then pauses for 2 ms, again and again:
//!   0: a plain lock; 1: by uses of a sticky one;
//! - `shares k n`: it does so n times, in the same way; ns of taking and releasing, the median;
//! - `takes n`: the same of the plain lock, but of taking alone;
//! - `crowd n`: it holds n locks and waits for n others; bytes for each hold and wait.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::load::{Crew, Outcome, Server};
use crate::options::Options;

pub struct Language {
    pub name: &'static str,
    /// What is called `rlock` on the command line, in words.
    pub ours: &'static str,
    /// The client over another library, where a program has the one or the other: its name on the
    /// command line, and in words.
    pub also: &'static [(&'static str, &'static str)],
    /// The others' names on the command line, and in words, with their defaults.
    pub peers: &'static [(&'static str, &'static str)],
}

pub static LANGUAGES: [Language; 5] = [
    Language {
        name: "python",
        ours: "rlock.asyncio",
        also: &[],
        peers: &[("redis-py", "redis.asyncio Lock (tries every 0.1 s)")],
    },
    Language {
        name: "node",
        ours: "rlock over node-redis",
        also: &[("rlock-ioredis", "rlock over ioredis")],
        peers: &[(
            "redlock",
            "node-redlock over ioredis (tries every 0.2 s, 10 times)",
        )],
    },
    Language {
        name: "java",
        ours: "rlock over Lettuce",
        also: &[],
        peers: &[
            ("redisson", "Redisson RLock (pub/sub)"),
            ("redisson-fair", "Redisson RFairLock (pub/sub)"),
        ],
    },
    Language {
        name: "go",
        ours: "rlock over go-redis",
        also: &[],
        peers: &[(
            "redsync",
            "redsync over go-redis (tries after 50 to 250 ms, 32 times)",
        )],
    },
    Language {
        name: "rust",
        ours: "rlock over redis-rs",
        also: &[],
        peers: &[(
            "rslock",
            "rslock over redis-rs (tries after up to 0.2 s, 3 times)",
        )],
    },
];

/// Has no session, and so no crowd in one process.
pub static PHP: Language = Language {
    name: "php",
    ours: "rlock over phpredis",
    also: &[],
    peers: &[(
        "symfony",
        "Symfony's lock over phpredis (tries every 0.1 s)",
    )],
};

impl Language {
    fn script(&self, name: &str) -> PathBuf {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/clients/programs");
        programs.join(self.name).join(name)
    }

    /// Builds its program; gives why not, where that cannot be.
    pub fn build(&'static self, options: &Options) -> Outcome<Result<Built<'static>, String>> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join("clients").join(self.name);
        std::fs::create_dir_all(&folder)?;
        let built = Command::new(self.script("build")).arg(&folder).output()?;
        match built.status.code() {
            Some(0) => Ok(Ok(Built {
                language: self,
                folder,
                versions: last_line(&built.stdout),
                warm: [
                    options.count(1_000, 20).to_string(),
                    options.millis(2_000, 500).as_millis().to_string(),
                ],
            })),
            // Its toolchain is not there.
            Some(3) => Ok(Err(String::from_utf8_lossy(&built.stdout)
                .trim()
                .to_owned())),
            _ => {
                let said = [built.stdout, built.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                Err(format!("{} does not build: {said}", self.name).into())
            }
        }
    }
}

fn last_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    said.trim().lines().last().unwrap_or_default().to_owned()
}

/// A language whose program is built.
pub struct Built<'a> {
    pub language: &'a Language,
    folder: PathBuf,
    /// Of the language and of the libraries.
    pub versions: String,
    /// For how many turns, and ms, a process warms up.
    warm: [String; 2],
}

impl Built<'_> {
    /// Starts so many processes with so many workers each.
    pub fn start(
        &self,
        side: &str,
        server: &Server,
        [processes, workers]: [usize; 2],
    ) -> Outcome<Crew> {
        Crew::start(processes, || {
            let mut command = Command::new(self.language.script("start"));
            let (port, workers) = (server.port().to_string(), workers.to_string());
            command.arg(&self.folder).args([side, &port, &workers]);
            command.args(&self.warm);
            Ok(command)
        })
    }
}
