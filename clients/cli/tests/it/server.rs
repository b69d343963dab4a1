//! A server of the test's own: a free port, an empty directory, gone with the test.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, FromRedisValue, Value};

use crate::ports::free_port;

pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Server {
    pub port: u16,
    child: Child,
    directory: PathBuf,
}

impl Server {
    pub fn start() -> Self {
        Self::start_at(free_port())
    }

    pub fn start_at(port: u16) -> Self {
        Self::with(port, &[])
    }

    pub fn with(port: u16, arguments: &[&str]) -> Self {
        let module = std::env::var("RLOCK_MODULE").expect("it is the path of librlock.so");
        Self::bare(port, &[&["--loadmodule", &module], arguments].concat())
    }

    /// Without the module.
    pub fn bare(port: u16, arguments: &[&str]) -> Self {
        let directory =
            std::env::temp_dir().join(format!("rlock-cli-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let server = std::env::var("RLOCK_SERVER").unwrap_or_else(|_| "redis-server".into());
        let mut command = Command::new(server);
        command.args([
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--bind",
            "127.0.0.1",
        ]);
        command.args(arguments).current_dir(&directory);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        dies_with_us(&mut command);
        let child = command.spawn().unwrap();
        let server = Self {
            port,
            child,
            directory,
        };
        until(|| server.try_ask::<Value>("PING").is_ok());
        server
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn ask<T: FromRedisValue>(&self, words: &str) -> T {
        self.try_ask(words).unwrap()
    }

    fn try_ask<T: FromRedisValue>(&self, words: &str) -> redis::RedisResult<T> {
        let client = Client::open(format!("redis://{}/", self.address()))?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        let mut words = words.split(' ');
        let mut ask = redis::cmd(words.next().unwrap());
        words.for_each(|word| _ = ask.arg(word));
        ask.query(&mut connection)
    }

    pub fn is_free(&self, key: &str) -> bool {
        self.ask::<i64>(&format!("EXISTS {key}")) == 0
    }

    pub fn waiters(&self, key: &str) -> usize {
        self.ask::<Vec<Value>>(&format!("RLOCK.WAITERS {key}"))
            .len()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a signal to a child that was not waited for yet.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub fn dies_with_us(command: &mut Command) {
    // SAFETY: prctl and signal may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            takes_signals();
            Ok(())
        })
    };
}

/// Who runs the tests in the background may have had these ignored, and that is inherited.
pub fn takes_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        // SAFETY: takes numbers.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

pub fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}
