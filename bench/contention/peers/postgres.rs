//! PostgreSQL's advisory locks, by its own benchmark, on a cluster that is thrown away.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::load::{end_with_this_process, Outcome};

/// How long it may take to start.
const START: Duration = Duration::from_secs(30);

/// One session's turn: the second is sent when the first is answered.
const SCRIPT: &str = "SELECT pg_advisory_lock(1);\nSELECT pg_advisory_unlock(1);\n";

/// A running cluster, gone when it is dropped.
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    process: Child,
}

impl Postgres {
    /// Starts it; gives why not, where that cannot be.
    pub fn start() -> Outcome<Result<Self, String>> {
        let Some(programs) = programs() else {
            return Ok(Err("PostgreSQL is not here".into()));
        };
        let user = match user() {
            Ok(user) => user,
            Err(why) => return Ok(Err(why)),
        };
        let folder = std::env::temp_dir().join(format!("rlock-bench-pg-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        if let Some([uid, gid]) = user {
            chown(&folder, Some(uid), Some(gid))?;
        }
        fs::write(folder.join("turn.sql"), SCRIPT)?;
        let data = folder.join("data");
        let mut make = program(&programs, "initdb", user);
        make.args(["--auth=trust", "--username=postgres", "--no-locale"]);
        make.args(["--encoding=UTF8", "--no-sync", "--pgdata"]);
        let made = make.arg(&data).current_dir(&folder).output()?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            fs::remove_dir_all(&folder)?;
            return Ok(Err(format!("initdb failed: {}", said.trim())));
        }
        let mut start = program(&programs, "postgres", user);
        start.arg("-D").arg(&data).arg("-k").arg(&folder);
        for setting in ["listen_addresses=", "max_connections=1100", "fsync=off"] {
            start.args(["-c", setting]);
        }
        start.stdin(Stdio::null()).stdout(Stdio::null());
        start.stderr(fs::File::create(folder.join("log"))?);
        start.current_dir(&folder);
        end_with_this_process(&mut start);
        let process = start.spawn()?;
        let mut cluster = Postgres {
            programs,
            folder,
            process,
        };
        cluster.wait_until_it_answers()?;
        Ok(Ok(cluster))
    }

    /// Its version and that of its benchmark.
    pub fn version(&self) -> Outcome<String> {
        let said = ["postgres", "pgbench"].map(|name| {
            let mut program = Command::new(self.programs.join(name));
            program.arg("--version").output()
        });
        let [server, bench] = said;
        let text = |output: Vec<u8>| String::from_utf8_lossy(&output).trim().to_owned();
        Ok(format!("{}; {}", text(server?.stdout), text(bench?.stdout)))
    }

    /// Turns a second of so many sessions.
    pub fn run(&self, sessions: usize) -> Outcome<f64> {
        // The time in which they connect is a part of it, and if they take longer than
        // that there is no rate.
        let seconds = 2 + sessions / 200;
        self.try_for(sessions, seconds)
            .or_else(|_| self.try_for(sessions, 4 * seconds))
    }

    fn try_for(&self, sessions: usize, seconds: usize) -> Outcome<f64> {
        let (sessions, seconds) = (sessions.to_string(), seconds.to_string());
        let mut bench = Command::new(self.programs.join("pgbench"));
        bench.args(["-n", "-M", "prepared", "-j", "2", "-U", "postgres"]);
        bench.args(["-c", &sessions, "-T", &seconds, "-h"]);
        bench.arg(&self.folder).arg("-f");
        bench.arg(self.folder.join("turn.sql")).arg("postgres");
        end_with_this_process(&mut bench);
        let output = bench.output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let rate = said.lines().find_map(|line| {
            let (rate, _) = line.strip_prefix("tps = ")?.split_once(' ')?;
            rate.parse().ok()
        });
        rate.ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("pgbench said no rate: {}", said.trim()).into()
        })
    }

    fn wait_until_it_answers(&mut self) -> Outcome<()> {
        let end = Instant::now() + START;
        loop {
            let mut ask = Command::new(self.programs.join("pg_isready"));
            ask.arg("-q").arg("-h").arg(&self.folder);
            if ask.status()?.success() {
                return Ok(());
            }
            if self.process.try_wait()?.is_some() || Instant::now() > end {
                let log = fs::read_to_string(self.folder.join("log"))?;
                return Err(format!("PostgreSQL did not start; its log:\n{log}").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Postgres {
    /// At once, with all its sessions.
    fn drop(&mut self) {
        // SAFETY: takes no pointers; the process has not been waited for, so its id is its own.
        unsafe { libc::kill(self.process.id() as libc::pid_t, libc::SIGQUIT) };
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where the newest version is, or the one in the path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = versions.flatten().map(|version| version.path().join("bin"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let has_all = |folder: &PathBuf| {
        let names = ["initdb", "postgres", "pgbench", "pg_isready"];
        names.iter().all(|name| folder.join(name).is_file())
    };
    let version = |folder: &PathBuf| {
        let name = folder.parent().and_then(Path::file_name);
        name.and_then(OsStr::to_str)?.parse::<u32>().ok()
    };
    let newest = debian.filter(has_all).max_by_key(version);
    newest.or_else(|| paths.into_iter().find(has_all))
}

fn program(folder: &Path, name: &str, user: Option<[u32; 2]>) -> Command {
    let mut command = Command::new(folder.join(name));
    if let Some([uid, gid]) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// It refuses to be run by root: then it is run by its own user. None: by this one.
fn user() -> Result<Option<[u32; 2]>, String> {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(None);
    }
    // SAFETY: the name ends with 0 and is never freed; what it gives is read before any
    // other call that could overwrite it.
    let user = unsafe { libc::getpwnam(c"postgres".as_ptr()).as_ref() };
    let user = user.ok_or("PostgreSQL refuses root, and there is no user postgres")?;
    Ok(Some([user.pw_uid, user.pw_gid]))
}
