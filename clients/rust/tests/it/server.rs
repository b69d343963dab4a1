//! A server of the test's own: a free port, an empty directory, gone with the test.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, FromRedisValue, Value};
use rlock_client::{Hold, Locks};

use crate::ports::free_port;

pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Server {
    pub port: u16,
    child: Child,
    directory: PathBuf,
    arguments: Vec<String>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(&[])
    }

    pub fn with(arguments: &[&str]) -> Self {
        let module = std::env::var("RLOCK_MODULE").expect("it is the path of librlock.so");
        Self::bare(&[&["--loadmodule", &module], arguments].concat())
    }

    /// Without the module.
    pub fn bare(arguments: &[&str]) -> Self {
        let port = free_port();
        let directory =
            std::env::temp_dir().join(format!("rlock-rust-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(port, &directory, &arguments);
        let server = Self {
            port,
            child,
            directory,
            arguments,
        };
        server.ready();
        server
    }

    fn ready(&self) {
        let end = Instant::now() + PATIENCE;
        let up = || {
            self.client()
                .get_connection_with_timeout(Duration::from_secs(1))
                .is_ok_and(|mut c| redis::cmd("PING").query::<Value>(&mut c).is_ok())
        };
        while !up() {
            assert!(Instant::now() < end, "the server does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn client(&self) -> Client {
        client(self.port)
    }

    pub fn locks(&self) -> Locks {
        // A busy machine may take longer than the few seconds that are usual.
        Locks::with_timeout(self.client(), PATIENCE)
    }

    pub fn ask<T: FromRedisValue>(&self, words: &str) -> T {
        self.try_ask(words).unwrap()
    }

    pub fn try_ask<T: FromRedisValue>(&self, words: &str) -> redis::RedisResult<T> {
        let mut connection = self.client().get_connection()?;
        let mut words = words.split(' ');
        let mut ask = redis::cmd(words.next().unwrap());
        words.for_each(|word| _ = ask.arg(word));
        ask.query(&mut connection)
    }

    /// Until it has renewed so many.
    pub async fn renewed(&self, times: usize) {
        let counted = format!("rlock_renewed:{times}\r\n");
        until(|| self.ask::<String>("INFO rlock").contains(&counted)).await;
    }

    pub fn is_free(&self, key: &str) -> bool {
        self.ask::<i64>(&format!("EXISTS {key}")) == 0
    }

    pub fn waiters(&self, key: &str) -> usize {
        self.ask::<Vec<Value>>(&format!("RLOCK.WAITERS {key}"))
            .len()
    }

    pub async fn waiting(&self, key: &str, many: usize) {
        until(|| self.waiters(key) == many).await;
    }

    pub async fn free(&self, key: &str) {
        until(|| self.is_free(key)).await;
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a signal to a child that was not waited for yet.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    pub fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }

    pub fn restart(&mut self) {
        self.child = spawn(self.port, &self.directory, &self.arguments);
        self.ready();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(port: u16, directory: &PathBuf, arguments: &[String]) -> Child {
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
    command.args(arguments);
    command
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: prctl may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
    command.spawn().unwrap()
}

pub fn client(port: u16) -> Client {
    Client::open(format!("redis://127.0.0.1:{port}/")).unwrap()
}

pub async fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub async fn soon<T>(what: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what.into_future())
        .await
        .expect("in time")
}

pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub async fn reason(hold: &Hold) -> &'static str {
    soon(hold.lost()).await.as_str()
}
