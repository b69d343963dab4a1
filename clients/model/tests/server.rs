//! The model's server and the real one do the same. Needs `redis-server` (or what
//! `RLOCK_SERVER` names) and the module (`RLOCK_MODULE`); without the module it is left out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rlock_quorum_model::server::Server;

#[path = "../../../tests/support/ports.rs"]
mod ports;

const LEASE: &str = "600000";

/// A server with a directory of its own, in which it keeps its append-only file.
struct Real {
    port: u16,
    folder: PathBuf,
    module: String,
    child: Process,
    line: BufReader<TcpStream>,
}

/// Ends with the test, however that ends.
struct Process(Child);

impl Process {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug, PartialEq)]
enum Reply {
    Number(u64),
    Null,
    Error(String),
    Text(String),
}

impl Real {
    fn start(module: String) -> Self {
        let port = ports::free_port();
        let folder = std::env::temp_dir().join(format!("rlock-model-{port}"));
        std::fs::create_dir_all(&folder).unwrap();
        let (child, line) = Self::run(port, &folder, &module);
        Self {
            port,
            folder,
            module,
            child,
            line,
        }
    }

    fn run(port: u16, folder: &Path, module: &str) -> (Process, BufReader<TcpStream>) {
        let server = std::env::var("RLOCK_SERVER").unwrap_or("redis-server".into());
        let child = Process(
            Command::new(server)
                .args([
                    "--port",
                    &port.to_string(),
                    "--save",
                    "",
                    "--appendonly",
                    "yes",
                ])
                .args([
                    "--appendfsync",
                    "always",
                    "--no-appendfsync-on-rewrite",
                    "no",
                ])
                .arg("--dir")
                .arg(folder)
                .args(["--loadmodule", module])
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                let mut line = BufReader::new(stream);
                if ask(&mut line, &["PING"]) == Reply::Text("PONG".into()) {
                    return (child, line);
                }
            }
            assert!(Instant::now() < end, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn ask(&mut self, words: &[&str]) -> Reply {
        ask(&mut self.line, words)
    }

    /// Killed and started again, with its memory.
    fn restart(&mut self) {
        self.child.end();
        (self.child, self.line) = Self::run(self.port, &self.folder, &self.module);
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.child.end();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn ask(line: &mut BufReader<TcpStream>, words: &[&str]) -> Reply {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    line.get_mut().write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    line.read_line(&mut reply).unwrap();
    let reply = reply.trim_end();
    match reply.split_at(1) {
        (":", number) => Reply::Number(number.parse().unwrap()),
        ("$", "-1") => Reply::Null,
        ("$", size) => {
            let mut text = vec![0; size.parse::<usize>().unwrap() + 2];
            line.read_exact(&mut text).unwrap();
            Reply::Text(String::from_utf8_lossy(&text[..text.len() - 2]).into())
        }
        ("+", text) => Reply::Text(text.into()),
        ("-", text) => Reply::Error(text.into()),
        _ => panic!("{reply}"),
    }
}

/// Small numbers in a row that looks random and is always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn the_real_server_does_the_same() {
    let Ok(module) = std::env::var("RLOCK_MODULE") else {
        println!("left out: RLOCK_MODULE names no module");
        return;
    };
    for counted in [false, true] {
        let mut real = Real::start(module.clone());
        if counted {
            let set = real.ask(&["CONFIG", "SET", "rlock.fencing", "counter"]);
            assert_eq!(set, Reply::Text("OK".into()));
        }
        for key in 0..8 {
            drive(&mut real, &format!("lock{key}"), counted, key);
        }
    }
}

fn drive(real: &mut Real, key: &str, counted: bool, seed: u64) {
    let mut dice = Dice(seed);
    let mut model = Server::<u64>::default();
    // The last token that this run of the server gave.
    let mut last = 0;
    for step in 0..60 {
        let who = dice.roll(3) as u8 + 1;
        let owner = who.to_string();
        let what = dice.roll(16);
        match what {
            0..=4 => {
                let reply = real.ask(&["RLOCK.ACQUIRE", key, &owner, LEASE, "ONCE"]);
                if model.owner == who && model.token != 0 {
                    assert_eq!(reply, Reply::Number(model.token), "{key} {step}");
                } else if model.is_free() || model.owner == who {
                    let Reply::Number(token) = reply else {
                        panic!("{key} {step}: {reply:?}")
                    };
                    assert!(
                        token > model.least().max(last),
                        "{key} {step}: {token} {model:?}"
                    );
                    model.grant(who, token, counted);
                    last = token;
                } else {
                    assert_eq!(reply, Reply::Null, "{key} {step}");
                }
            }
            5..=10 => {
                let about = [
                    1,
                    last.saturating_sub(1_000_000),
                    last,
                    last + 1,
                    last + 900_000_000,
                ];
                let token = about[dice.roll(5) as usize].max(1);
                let reply = real.ask(&[
                    "RLOCK.RENEW",
                    key,
                    &owner,
                    LEASE,
                    "FENCE",
                    &token.to_string(),
                ]);
                match (model.fence(who, token), reply) {
                    (Some(counter), Reply::Number(replied)) => {
                        assert_eq!(counter, replied, "{key} {step}")
                    }
                    (None, Reply::Error(text)) => assert!(text.starts_with("NOTHELD"), "{text}"),
                    (model, reply) => panic!("{key} {step}: {model:?}, {reply:?}"),
                }
            }
            11..=13 => {
                let reply = real.ask(&["RLOCK.RELEASE", key, &owner, "ALL", "IFHELD"]);
                assert_eq!(reply, Reply::Number(0), "{key} {step}");
                if model.owner == who {
                    model.free();
                }
            }
            14 => {
                // The lease ends.
                let reply = real.ask(&["RLOCK.RENEW", key, &owner, "1"]);
                if model.owner != who {
                    assert!(matches!(reply, Reply::Error(_)), "{key} {step}: {reply:?}");
                    continue;
                }
                model.free();
                let end = Instant::now() + Duration::from_secs(30);
                while real.ask(&["EXISTS", key]) != Reply::Number(0) {
                    assert!(Instant::now() < end);
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            _ => {
                real.restart();
                if counted {
                    real.ask(&["CONFIG", "SET", "rlock.fencing", "counter"]);
                }
                model.restart();
                last = 0;
            }
        }
    }
}
