//! A server process with the module loaded, gone at the end of the test.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::ports::free_port;
use super::process::{signal, spawn};
use super::{eventually, now_ms, poll, Ask, Clock, Flavour, RawClient, Version, BOUND};

const LOG: &str = "server.log";
/// In the folder of what is built.
const REDIS_6: &str = "servers/redis-6.2/run";

pub struct Server {
    port: u16,
    dir: PathBuf,
    options: Vec<String>,
    program: OsString,
    module: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// None once it was stopped on purpose.
    process: Mutex<Option<Child>>,
}

enum Launch {
    Ready(Child),
    PortTaken,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts with options in the form of the command line, such as
    /// `["--appendonly", "yes"]`. They may override those set here.
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_of(module(), options)
    }

    /// Starts a server with this module.
    pub fn start_of(module: PathBuf, options: &[&str]) -> Self {
        Self::launch(options, Some(module), Vec::new())
    }

    /// Starts a server whose key events somebody may get, so that rlock observes all keys
    /// that it knows.
    pub fn start_observed() -> Self {
        Self::start_with(&["--notify-keyspace-events", "KEA"])
    }

    /// Starts a server that has not loaded the module.
    pub fn start_bare(options: &[&str]) -> Self {
        Self::launch(options, None, Vec::new())
    }

    /// Starts the Redis 6.2 that `tests/servers/fetch` provides. `None`, and says so: it is not there.
    pub fn start_redis_6() -> Option<Self> {
        let fetched = || Some(env::current_exe().ok()?.ancestors().nth(3)?.join(REDIS_6));
        let program = env::var_os("RLOCK_REDIS_6")
            .map(PathBuf::from)
            .or_else(fetched);
        match program.filter(|program| program.exists()) {
            Some(program) => Some(Self::launch_program(program.into(), &[], None, Vec::new())),
            None => {
                println!("skipped: no Redis 6.2: run tests/servers/fetch, or set RLOCK_REDIS_6");
                None
            }
        }
    }

    /// Starts a server that goes by this wall clock. `None`, and says so: it cannot
    /// be made to.
    pub fn start_by(clock: &Clock, options: &[&str]) -> Option<Self> {
        let server = Self::launch(options, Some(module()), clock.environment());
        let day = 86_400;
        let obeys = [day, 0].into_iter().all(|ahead| {
            clock.set_off(ahead * 1000);
            let shows = || (server.clock_is_ahead() - ahead).abs() < 60;
            poll(Duration::from_secs(2), || shows().then_some(())).is_some()
        });
        clock.set_off(0);
        if !obeys {
            println!("skipped: this server's clock cannot be set for a test");
            return None;
        }
        Some(server)
    }

    /// By how many seconds the server's clock is, by its own account: Valkey 9 looks
    /// at it now and then only.
    #[track_caller]
    pub fn clock_is_ahead(&self) -> i64 {
        let time = self.raw().texts("TIME");
        time[0].parse::<i64>().expect("seconds") - now_ms() / 1000
    }

    fn launch(
        options: &[&str],
        module: Option<PathBuf>,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        let program = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let allowed = [
            "--enable-debug-command",
            "yes",
            "--enable-module-command",
            "yes",
        ];
        Self::launch_program(program, &[&allowed, options].concat(), module, environment)
    }

    fn launch_program(
        program: OsString,
        options: &[&str],
        module: Option<PathBuf>,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        let mut server = Self {
            port: 0,
            dir: new_dir(),
            options: options.iter().map(ToString::to_string).collect(),
            program,
            module,
            environment,
            process: Mutex::new(None),
        };
        // Between the look for a free port and its use another may take it.
        for _ in 0..20 {
            server.port = free_port();
            if let Launch::Ready(child) = server.launch_once() {
                server.process = Mutex::new(Some(child));
                return server;
            }
        }
        panic!("no free port:\n{}", server.log_tail());
    }

    /// Starts a replica of `master` and waits until it is in sync.
    pub fn start_replica_of(master: &Server) -> Self {
        Self::start_replica_with(master, &[])
    }

    pub fn start_replica_with(master: &Server, options: &[&str]) -> Self {
        let port = master.port.to_string();
        let replica = Self::start_with(&[&["--replicaof", "127.0.0.1", &port], options].concat());
        replica.is_in_sync();
        replica
    }

    /// Waits until it is a replica that is in sync.
    #[track_caller]
    pub fn is_in_sync(&self) {
        let link = || self.info_field("replication", "master_link_status");
        eventually("the replica is in sync", || link().as_deref() == Some("up"));
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its files are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A client for pipelines and requests that block.
    pub fn raw(&self) -> RawClient {
        RawClient::to(self.port).expect("connect")
    }

    /// What the server logged so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.dir.join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// One line of INFO.
    #[track_caller]
    pub fn info_field(&self, section: &str, name: &str) -> Option<String> {
        let info = self.raw().text(&["INFO", section]);
        info.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found == name).then(|| value.to_owned())
        })
    }

    /// Somebody who waits by subscription, as Redisson does, is known to the module, if it is
    /// there.
    #[track_caller]
    pub fn sees_subscribers(&self) {
        let seen = || self.info_field("rlock", "rlock_subscribers_seen");
        eventually("who subscribes is seen", || seen().as_deref() != Some("0"));
    }

    /// Somebody subscribes to this channel, and that was seen.
    #[track_caller]
    pub fn waits_as_redisson(&self, channel: &str) -> RawClient {
        let mut client = self.raw();
        client.ask(&["SUBSCRIBE", channel]);
        self.sees_subscribers();
        client
    }

    #[track_caller]
    pub fn version(&self) -> Version {
        match self.info_field("server", "valkey_version") {
            Some(text) => Version::new(Flavour::Valkey, &text),
            None => {
                let text = self.info_field("server", "redis_version");
                Version::new(Flavour::Redis, &text.expect("a version"))
            }
        }
    }

    /// Panics unless the process runs and answers.
    #[track_caller]
    pub fn alive(&self) {
        if let Some(status) = self.with_process(|child| child.try_wait().expect("wait")) {
            panic!("the server is gone, {status}");
        }
        self.raw().in_step();
    }

    /// Stops the process in its tracks, as a long stall would.
    pub fn pause_process(&self) {
        self.with_process(|child| signal(child, libc::SIGSTOP));
    }

    pub fn resume_process(&self) {
        self.with_process(|child| signal(child, libc::SIGCONT));
    }

    /// Shuts the server down and waits until it is gone. What is on disk stays.
    pub fn stop_gracefully(&mut self) {
        let mut child = self.take_process();
        signal(&child, libc::SIGTERM);
        eventually("the server shuts down", || {
            child.try_wait().expect("wait").is_some()
        });
    }

    /// Kills the server, as a crash would. What is on disk stays.
    pub fn kill(&mut self) {
        let mut child = self.take_process();
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    /// Starts it after a stop: same directory, port and options.
    pub fn start_again(&mut self) {
        assert!(self.slot().is_none(), "it still runs");
        let launched = poll(BOUND, || match self.launch_once() {
            Launch::Ready(child) => Some(child),
            Launch::PortTaken => None,
        });
        *self.slot() = Some(launched.expect("its port is free again"));
    }

    pub fn restart(&mut self) {
        self.stop_gracefully();
        self.start_again();
    }

    /// The same, with another module.
    pub fn restart_with(&mut self, module: PathBuf) {
        // A replica that writes its first AOF does not end.
        eventually("its AOF is whole", || {
            let writes = self.info_field("persistence", "aof_rewrite_in_progress");
            writes.as_deref() == Some("0")
        });
        self.stop_gracefully();
        self.module = Some(module);
        self.start_again();
    }

    fn slot(&mut self) -> &mut Option<Child> {
        self.process.get_mut().unwrap_or_else(|e| e.into_inner())
    }

    fn take_process(&mut self) -> Child {
        self.slot().take().expect("the server runs")
    }

    fn with_process<T>(&self, action: impl FnOnce(&mut Child) -> T) -> T {
        let mut slot = self.process.lock().unwrap_or_else(|e| e.into_inner());
        action(slot.as_mut().expect("the server runs"))
    }

    fn try_connect(&self) -> redis::RedisResult<redis::Connection> {
        let client = redis::Client::open(("127.0.0.1", self.port))?;
        let connection = client.get_connection_with_timeout(BOUND)?;
        connection.set_read_timeout(Some(3 * BOUND))?;
        Ok(connection)
    }

    fn launch_once(&self) -> Launch {
        let from = self.log().len();
        let mut command = Command::new(&self.program);
        command
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--logfile", LOG, "--daemonize", "no"])
            .args(["--repl-diskless-sync-delay", "0"])
            .arg("--dir")
            .arg(&self.dir)
            .args(
                env::var("RLOCK_SERVER_OPTIONS")
                    .iter()
                    .flat_map(|all| all.split(' ')),
            )
            .args(module_options(self.module.as_ref()))
            .args(&self.options)
            .envs(self.environment.iter().cloned())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = match spawn(command) {
            Ok(child) => child,
            Err(error) => panic!("{}: {error}", self.program.display()),
        };
        let exit = poll(3 * BOUND, || match child.try_wait().expect("wait") {
            Some(status) => Some(Some(status)),
            None => self.answers().then_some(None),
        });
        match exit {
            Some(None) => Launch::Ready(child),
            Some(Some(_)) if self.log()[from..].contains("Address already in use") => {
                Launch::PortTaken
            }
            failed => {
                let _ = child.kill();
                let _ = child.wait();
                let how = match failed.flatten() {
                    Some(status) => format!("ended with {status}"),
                    None => "does not answer".to_owned(),
                };
                panic!("the server {how}:\n{}", self.log_tail());
            }
        }
    }

    /// Whether the server on the port is ready, and ours.
    fn answers(&self) -> bool {
        let Ok(mut connection) = self.try_connect() else {
            return false;
        };
        let ping: redis::RedisResult<String> = redis::cmd("PING").query(&mut connection);
        let dir: redis::RedisResult<Vec<String>> = redis::cmd("CONFIG")
            .arg(&["GET", "dir"])
            .query(&mut connection);
        ping.is_ok() && dir.is_ok_and(|pair| Path::new(&pair[1]) == self.dir)
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(80)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut gone = false;
        if let Some(mut child) = self.slot().take() {
            gone = !matches!(child.try_wait(), Ok(None));
            if env::var_os("RLOCK_STOPS_GENTLY").is_some() {
                // So that a tool can say at its end what it has seen.
                signal(&child, libc::SIGCONT);
                signal(&child, libc::SIGTERM);
                poll(2 * BOUND, || child.try_wait().ok().flatten());
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        // A server that is still writing its crash report has not ended yet.
        let crashed = gone || self.log().contains("BUG REPORT START");
        if crashed || thread::panicking() {
            let (port, tail) = (self.port, self.log_tail());
            eprintln!("--- log of the server on port {port} ---\n{tail}\n---");
        }
        let _ = fs::remove_dir_all(&self.dir);
        if crashed && !thread::panicking() {
            panic!("the server crashed during the test");
        }
    }
}

fn module_options(module: Option<&PathBuf>) -> Vec<OsString> {
    let options = module.map(|module| vec!["--loadmodule".into(), module.into()]);
    options.unwrap_or_default()
}

/// The module under test.
pub fn module() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/release/librlock.so");
    let path = env::var_os("RLOCK_MODULE").map_or(built, PathBuf::from);
    match path.canonicalize() {
        Ok(path) => path,
        Err(_) => panic!("{} is missing: run `make build`", path.display()),
    }
}

fn new_dir() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("rlock-test-{}-{count}", std::process::id());
    let dir = env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a temporary directory");
    dir.canonicalize().expect("a temporary directory")
}
