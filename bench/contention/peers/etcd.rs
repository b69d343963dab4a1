//! etcd's lock service, by HTTP to its gateway.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::load::{end_with_this_process, Outcome};

/// How long it may take to start.
const START: Duration = Duration::from_secs(20);

/// A reply that takes longer than this does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of the lock, in base64.
const NAME: &str = "bG9jaw==";

/// A running server, gone when it is dropped.
pub struct Etcd {
    folder: PathBuf,
    process: Child,
    port: u16,
}

impl Etcd {
    /// Starts it; gives why not, where that cannot be.
    pub fn start() -> Outcome<Result<Self, String>> {
        let Ok(help) = Command::new("etcd").arg("--help").output() else {
            return Ok(Err("etcd is not here".into()));
        };
        let help = [help.stdout, help.stderr].concat();
        let ports = [
            TcpListener::bind(("127.0.0.1", 0))?,
            TcpListener::bind(("127.0.0.1", 0))?,
        ];
        let [port, peers] = ports.each_ref().map(TcpListener::local_addr);
        let (port, peers) = (port?.port(), peers?.port());
        drop(ports);
        let folder = std::env::temp_dir().join(format!("rlock-bench-etcd-{port}"));
        fs::create_dir_all(&folder)?;
        let [ours, theirs] = [port, peers].map(|port| format!("http://127.0.0.1:{port}"));
        let mut start = Command::new("etcd");
        start.arg("--data-dir").arg(folder.join("data"));
        start.args([
            "--listen-client-urls",
            &ours,
            "--advertise-client-urls",
            &ours,
        ]);
        start.args(["--listen-peer-urls", &theirs]);
        start.args(["--initial-advertise-peer-urls", &theirs]);
        start.args(["--initial-cluster", &format!("default={theirs}")]);
        if String::from_utf8_lossy(&help).contains("--unsafe-no-fsync") {
            start.arg("--unsafe-no-fsync");
        }
        start.stdin(Stdio::null()).stdout(Stdio::null());
        start.stderr(fs::File::create(folder.join("log"))?);
        end_with_this_process(&mut start);
        let process = start.spawn()?;
        let etcd = Etcd {
            folder,
            process,
            port,
        };
        let end = Instant::now() + START;
        while etcd.lease().is_err() {
            if Instant::now() > end {
                let log = fs::read_to_string(etcd.folder.join("log"))?;
                return Err(format!("etcd did not start; its log:\n{log}").into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(Ok(etcd))
    }

    pub fn version() -> Outcome<String> {
        let said = Command::new("etcd").arg("--version").output()?.stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok(said.lines().next().unwrap_or_default().to_owned())
    }

    fn lease(&self) -> Outcome<(Client, String)> {
        let mut client = Client::connect(self.port)?;
        let reply = client.post("/v3/lease/grant", r#"{"TTL":"600"}"#)?;
        let lease = field(&reply, "ID")?.to_owned();
        Ok((client, lease))
    }

    /// Hand-overs a second among so many clients, each with a thread and a lease.
    pub fn run(&self, clients: usize, time: Duration) -> Outcome<f64> {
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::with_capacity(clients);
        for number in 1..=clients as u64 {
            let (client, lease) = self.lease()?;
            let shared = shared.clone();
            let thread = thread::Builder::new().stack_size(128 * 1024);
            threads.push(thread.spawn(move || contend(client, &lease, number, &shared))?);
        }
        thread::sleep(time / 3);
        let count = || shared.hand_overs.load(Ordering::SeqCst);
        let (start, first) = (Instant::now(), count());
        thread::sleep(time);
        let rate = (count() - first) as f64 / start.elapsed().as_secs_f64();
        shared.ends.store(true, Ordering::SeqCst);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(rate)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What the threads count.
#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    last: AtomicU64,
    hand_overs: AtomicU64,
}

fn contend(mut client: Client, lease: &str, number: u64, shared: &Shared) -> Outcome<()> {
    let lock = format!(r#"{{"name":"{NAME}","lease":"{lease}"}}"#);
    while !shared.ends.load(Ordering::SeqCst) {
        let reply = client.post("/v3/lock/lock", &lock)?;
        if shared.last.swap(number, Ordering::SeqCst) != number {
            shared.hand_overs.fetch_add(1, Ordering::SeqCst);
        }
        let unlock = format!(r#"{{"key":"{}"}}"#, field(&reply, "key")?);
        client.post("/v3/lock/unlock", &unlock)?;
    }
    Ok(())
}

/// A connection that is kept.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(port: u16) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Client(BufReader::with_capacity(1024, stream)))
    }

    /// Gives the body of the reply.
    fn post(&mut self, path: &str, body: &str) -> Outcome<String> {
        let length = body.len();
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}");
        self.0.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let mut length = None;
        loop {
            let line = self.line()?.to_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>()?);
            }
        }
        let mut body = vec![0; length.ok_or("etcd did not say how long its reply is")?];
        self.0.read_exact(&mut body)?;
        let body = String::from_utf8(body)?;
        if status.split(' ').nth(1) != Some("200") {
            return Err(format!("etcd replied {status}: {body}").into());
        }
        Ok(body)
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err("etcd closed the connection".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// The value of a string in a reply.
fn field<'a>(json: &'a str, name: &str) -> Outcome<&'a str> {
    let found = json.split_once(&format!("\"{name}\":\""));
    let value = found.and_then(|(_, rest)| rest.split_once('"'));
    Ok(value.ok_or_else(|| format!("etcd replied {json:?}"))?.0)
}
