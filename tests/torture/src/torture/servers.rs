//! The servers of a round: processes that end with ours.

use std::env;
use std::fs::{self, File};
use std::io::{self, Error};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rlock_torture::clock::now_us;
use rlock_torture::history::Run;

use crate::disk::Disk;
use crate::link::Link;
use crate::shim::Clock;
use crate::world::eventually;

/// For a server to start, also on a busy machine.
const START: Duration = Duration::from_secs(20);

pub struct Server {
    pub port: u16,
    pub dir: PathBuf,
    pub options: Vec<String>,
    module: Option<PathBuf>,
    child: Option<Child>,
    since: u64,
    pub clock: Option<Clock>,
    /// Its folder, if it can be filled.
    pub disk: Option<Disk>,
}

impl Server {
    pub fn start(dir: &Path, module: Option<&Path>, options: &[&str]) -> io::Result<Self> {
        Self::start_by(None, dir, module, options)
    }

    /// One whose wall clock goes by that of this library, if there is one.
    pub fn start_by(
        shim: Option<&Path>,
        dir: &Path,
        module: Option<&Path>,
        options: &[&str],
    ) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let mut last = Error::other("no free port");
        for _ in 0..10 {
            let clock = shim.map(|shim| Clock::new(shim, dir.with_extension("clock")));
            let mut server = Self {
                port: free_port()?,
                dir: dir.to_owned(),
                options: options.iter().map(ToString::to_string).collect(),
                module: module.map(Path::to_owned),
                child: None,
                since: 0,
                clock: clock.transpose()?,
                disk: None,
            };
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub fn launch(&mut self) -> io::Result<()> {
        let program = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let mut command = Command::new(program);
        command
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--daemonize", "no"])
            .args(["--enable-debug-command", "yes"])
            .args(["--repl-diskless-sync-delay", "0", "--repl-timeout", "20"])
            .args(["--repl-backlog-size", "16mb", "--databases", "2"])
            .args(["--auto-aof-rewrite-percentage", "0"])
            .args(["--notify-keyspace-events", "Ed"])
            .arg("--logfile")
            .arg(self.log_file())
            .arg("--dir")
            .arg(&self.dir)
            .current_dir(&self.dir);
        if let Some(module) = &self.module {
            command.arg("--loadmodule").arg(module);
        }
        let more = env::var("RLOCK_SERVER_OPTIONS").unwrap_or_default();
        command.args(more.split_whitespace()).args(&self.options);
        if let Some(clock) = &self.clock {
            command.envs(clock.environment());
        }
        let output = File::create(self.dir.with_extension("out"))?;
        command.stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output);
        self.child = Some(spawn(command)?);
        self.since = now_us();
        let end = Instant::now() + START;
        while Instant::now() < end {
            if self.is_gone() {
                break;
            }
            if self.answers() {
                return Ok(());
            }
            sleep(Duration::from_millis(3));
        }
        self.end();
        Err(Error::other(format!(
            "a server did not start:\n{}",
            self.log_tail(30)
        )))
    }

    fn answers(&self) -> bool {
        let ask = || -> io::Result<bool> {
            let mut link = Link::open_within(self.port, Duration::from_secs(2))?;
            link.must("PING")?;
            let dir = link.must("CONFIG GET dir")?;
            Ok(dir.array().get(1).and_then(|dir| dir.text()) == self.dir.to_str())
        };
        ask().unwrap_or(false)
    }

    pub fn link(&self) -> io::Result<Link> {
        Link::open(self.port)
    }

    pub fn signal(&self, signal: i32) {
        if let Some(child) = &self.child {
            send_signal(child.id(), signal);
        }
    }

    /// It has ended, though nobody told it to.
    pub fn is_gone(&mut self) -> bool {
        match &mut self.child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => false,
        }
    }

    /// Kills it, as a crash would; its life until then.
    pub fn end(&mut self) -> Run {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        Run {
            server: self.port,
            from: self.since,
            to: Some(now_us()),
        }
    }

    /// Beside its folder, where there is room for it.
    fn log_file(&self) -> PathBuf {
        self.dir.with_extension("log")
    }

    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn log_tail(&self, lines: usize) -> String {
        let log = self.log();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// A sentinel: it keeps what it knows in its configuration.
pub struct Program {
    pub port: u16,
    child: Child,
}

impl Program {
    pub fn sentinel(dir: &Path, lines: &str) -> io::Result<Self> {
        let port = free_port()?;
        let conf = dir.join("sentinel.conf");
        let own = format!("port {port}\nbind 127.0.0.1\ndir {}\n", dir.display());
        fs::write(&conf, format!("{own}logfile sentinel.log\n{lines}"))?;
        let program = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let mut command = Command::new(program);
        command.arg(&conf).arg("--sentinel").current_dir(dir);
        let output = File::create(dir.join("sentinel.out"))?;
        command.stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output);
        let child = spawn(command)?;
        let sentinel = Self { port, child };
        eventually("a sentinel starts", START, || {
            Link::open(port)?.must("PING").map(|_| true)
        })?;
        Ok(sentinel)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a process that the kernel kills when ours dies. To be called by the main
/// thread only, for it is the thread whose death counts.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    // SAFETY: prctl is one system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(
            || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            },
        );
    }
    command.spawn()
}

pub fn send_signal(pid: u32, signal: i32) {
    // SAFETY: kill has no memory effects here, and the pid is that of a child which
    // was not waited for.
    unsafe { libc::kill(pid as i32, signal) };
}

/// Below the ports that the kernel hands to clients, also with the 10,000 that a
/// cluster adds for its bus.
fn free_port() -> io::Result<u16> {
    let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    for _ in 0..200 {
        let port = fastrand::u16(10_000..20_000);
        if free(port) && free(port + 10_000) {
            return Ok(port);
        }
    }
    Err(Error::other("no free port"))
}
