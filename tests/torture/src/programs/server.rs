//! The server of a round, which is killed and started again with what it has written.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Error};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::link::Link;
use crate::process::{send_signal, spawn};

/// Who may not use functions: whose client has the script where there is no module. The password
/// is the name.
pub const NO_FUNCTIONS: &str = "no-functions";
/// The file of the server's settings that says so.
const USERS: &str = "users.conf";

const START: Duration = Duration::from_secs(20);

pub struct Server {
    pub port: u16,
    dir: PathBuf,
    /// None: it has none.
    module: Option<PathBuf>,
    child: Option<Child>,
}

impl Server {
    pub fn start(dir: &Path, module: Option<&Path>) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        fs::write(dir.join(USERS), users()?)?;
        let mut last = Error::other("no free port");
        for _ in 0..10 {
            let port = fastrand::u16(10_000..20_000);
            if TcpListener::bind(("127.0.0.1", port)).is_err() {
                continue;
            }
            let mut server = Self {
                port,
                dir: dir.to_owned(),
                module: module.map(Path::to_owned),
                child: None,
            };
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub fn launch(&mut self) -> io::Result<()> {
        let mut command = Command::new(program());
        command
            .arg(self.dir.join(USERS))
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args([
                "--save",
                "",
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
            ])
            .arg("--dir")
            .arg(&self.dir);
        if let Some(module) = &self.module {
            command.arg("--loadmodule").arg(module);
        }
        let more = env::var("RLOCK_SERVER_OPTIONS").unwrap_or_default();
        command.args(more.split_whitespace());
        let log = self.dir.with_extension("log");
        let out = File::options().create(true).append(true).open(&log)?;
        command.stdin(Stdio::null());
        command.stdout(out.try_clone()?).stderr(out);
        self.child = Some(spawn(command)?);
        let end = Instant::now() + START;
        while Instant::now() < end && !self.is_gone() {
            if self.answers() {
                return Ok(());
            }
            sleep(Duration::from_millis(3));
        }
        self.kill();
        let log = fs::read_to_string(log).unwrap_or_default();
        Err(Error::other(format!("the server did not start:\n{log}")))
    }

    fn answers(&self) -> bool {
        let ask = || -> io::Result<bool> {
            let mut link = Link::open_within(self.port, Duration::from_secs(2))?;
            let dir = link.must("CONFIG GET dir")?;
            // Only once it has read its data.
            link.must("DBSIZE")?;
            let own = self.dir.canonicalize()?;
            Ok(dir.array().get(1).and_then(|dir| dir.text()) == own.to_str())
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
        let child = self.child.as_mut();
        child.is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> OsString {
    env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into())
}

fn users() -> io::Result<String> {
    let said = Command::new(program()).arg("--version").output()?.stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.split_once("v=").map_or("", |(_, version)| version);
    // Servers before 7 know no such commands to forbid.
    let forbidden = match version.split('.').next().map(str::parse) {
        Some(Ok(0..7)) => "",
        _ => " -fcall -fcall_ro -function",
    };
    Ok(format!(
        "user {NO_FUNCTIONS} on >{NO_FUNCTIONS} ~* &* +@all{forbidden}\n"
    ))
}
