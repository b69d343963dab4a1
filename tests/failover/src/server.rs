//! A process of the server's program, which ends with ours.

use std::env;
use std::fs::{self, File};
use std::io::{self, Error};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::clock::within;
use crate::conn;

pub struct Server {
    pub port: u16,
    pub dir: PathBuf,
    child: Child,
}

impl Server {
    /// A server with the module.
    pub fn start(dir: &Path, options: &[String]) -> io::Result<Self> {
        let module = env::var("RLOCK_MODULE")
            .map_err(|_| Error::other("RLOCK_MODULE is to name the module: use make"))?;
        let mut all: Vec<String> = words("--save  --appendonly no --loadmodule");
        all.push(module);
        all.extend(words(
            "--repl-diskless-sync-delay 0 --repl-ping-replica-period 1 --repl-backlog-size 16mb",
        ));
        all.extend_from_slice(options);
        Self::run(dir, &[], &all)
    }

    /// One that finds these lines in its configuration, which it may write anew.
    pub fn sentinel(dir: &Path, lines: &[String]) -> io::Result<Self> {
        Self::run(dir, lines, &words("--sentinel"))
    }

    fn run(dir: &Path, lines: &[String], options: &[String]) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let port = free_port()?;
        let mut lines = lines.to_vec();
        lines.push(format!("port {port}\nbind 127.0.0.1\nlogfile server.log"));
        lines.push(format!("dir {}", dir.display()));
        let conf = dir.join("server.conf");
        fs::write(&conf, lines.join("\n"))?;
        let program = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let mut command = Command::new(program);
        command.arg(conf).args(options).current_dir(dir);
        let output = File::create(dir.join("server.out"))?;
        command.stdin(Stdio::null());
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
        let server = Self {
            port,
            dir: dir.to_owned(),
            child,
        };
        if within(30_000, || conn::ask(port, "PING").is_ok()) {
            return Ok(server);
        }
        Err(Error::other(format!("no start: {}", server.log())))
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: kill has no memory effects here, and the child was not waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    pub fn log(&self) -> String {
        let read = |name| fs::read(self.dir.join(name)).unwrap_or_default();
        let bytes = [read("server.log"), read("server.out")].concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What ROLE says first; empty if it says nothing.
    pub fn role(&self) -> String {
        role(self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn role(port: u16) -> String {
    let reply = conn::ask(port, "ROLE").ok();
    let first = reply.and_then(|reply| reply.array().first()?.text().map(str::to_owned));
    first.unwrap_or_default()
}

pub fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Below those that the kernel hands to clients, also with the 10,000 of a cluster's bus;
/// none twice.
fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Far from where another one of these begins.
    let first = (std::process::id() * 37 % 9000) as u16;
    let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    for _ in 0..2000 {
        let port = 11_000 + (first + NEXT.fetch_add(1, Ordering::SeqCst)) % 9000;
        if free(port) && free(port + 10_000) {
            return Ok(port);
        }
    }
    Err(Error::other("no free port"))
}
