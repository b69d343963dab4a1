//! A server with the module, whose process ends with ours, and what its log says.

use std::env;
use std::fs::{self, File};
use std::io::{self, Error};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::link::Link;

const LOG: &str = "server.log";
/// The same locks as functions.
const LIBRARY: &str = include_str!("../../../lua-compat/rlock.lua");
const OUT: &str = "server.out";

/// What no log may hold. The first is what rlock says of a panic that it caught.
const FAULTS: [&str; 8] = [
    "rlock: a fault in",
    "panicked at",
    "REDIS BUG REPORT",
    "VALKEY BUG REPORT",
    "BUG REPORT START",
    "ASSERTION",
    "Guru Meditation",
    "crashed by signal",
];

pub struct Server {
    pub port: u16,
    pub dir: PathBuf,
    child: Child,
}

impl Server {
    pub fn start() -> io::Result<Self> {
        let mut last = Error::other("no free port");
        for _ in 0..10 {
            match Self::launch() {
                Ok(server) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn launch() -> io::Result<Self> {
        let built = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../target/release/librlock.so"
        );
        let module = env::var_os("RLOCK_MODULE").unwrap_or(built.into());
        let (port, dir) = (free_port()?, new_dir()?);
        let program = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let mut command = Command::new(program);
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--logfile", LOG, "--daemonize", "no"])
            .args(["--enable-debug-command", "yes", "--databases", "4"])
            .args(["--notify-keyspace-events", "KEA"])
            .args(["--client-output-buffer-limit", "pubsub 0 0 0"])
            .arg("--dir")
            .arg(&dir)
            .arg("--loadmodule")
            .arg(module)
            .current_dir(&dir)
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null());
        let output = File::create(dir.join(OUT))?;
        command.stdout(output.try_clone()?).stderr(output);
        // SAFETY: prctl is one system call, which is allowed between fork and exec.
        unsafe {
            command.pre_exec(
                || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(Error::last_os_error()),
                },
            );
        }
        let child = command.spawn()?;
        let mut server = Self { port, dir, child };
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end && server.is_alive() {
            if Link::open(port)
                .and_then(|mut link| link.ask(&["PING"]))
                .is_ok()
            {
                Link::open(port)?.ask(&["FUNCTION", "LOAD", LIBRARY])?;
                return Ok(server);
            }
            sleep(Duration::from_millis(5));
        }
        Err(Error::other(format!("no start:\n{}", server.log())))
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn log(&self) -> String {
        let read = |name| fs::read(self.dir.join(name)).unwrap_or_default();
        let bytes = [read(LOG), read(OUT)].concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The lines around what no log may hold.
    pub fn faults(&self) -> Option<String> {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let at = lines
            .iter()
            .position(|line| FAULTS.iter().any(|fault| line.contains(fault)))?;
        let end = lines.len().min(at + 40);
        Some(lines[at.saturating_sub(3)..end].join("\n"))
    }

    /// A fault, or that it is gone.
    pub fn trouble(&mut self) -> Option<String> {
        let faults = self.faults();
        if self.is_alive() {
            return faults;
        }
        Some(format!(
            "the server is gone\n{}",
            faults.unwrap_or_default()
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() && self.faults().is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn new_dir() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("rlock-hostile-{}-{number}", std::process::id());
    let dir = env::temp_dir().join(name);
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// Below the ports that the kernel hands to clients.
fn free_port() -> io::Result<u16> {
    let mut ports = (0..200).map(|_| fastrand::u16(20_000..30_000));
    let free = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.ok_or_else(|| Error::other("no free port"))
}
