//! Measures for how long a master goes on granting that a Sentinel has replaced: until
//! it is told. It holds nothing, for that is Sentinel's to do.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::Value;

use super::stall::{granted, waited_for};
use crate::support::{eventually_within, now_ms, pair, pass, poll, spawn, Server};

const LONG: Duration = Duration::from_secs(60);

struct Sentinel {
    process: Child,
    port: u16,
    conf: PathBuf,
}

impl Sentinel {
    /// One that watches this pair, and knows the replica.
    fn of(server: &Server, replica: &Server) -> Self {
        let port = replica.port() + 10_000;
        let conf = replica.dir().join("sentinel.conf");
        let lines = [
            format!("port {port}"),
            format!("dir {}", replica.dir().display()),
            format!("sentinel monitor m 127.0.0.1 {} 1", server.port()),
            "sentinel down-after-milliseconds m 1000".to_owned(),
            "sentinel failover-timeout m 10000".to_owned(),
        ];
        fs::write(&conf, lines.join("\n")).expect("its configuration");
        let program = std::env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let mut command = Command::new(program);
        command.arg(&conf).arg("--sentinel");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = spawn(command).expect("a sentinel");
        // It learns of the replica from the master's INFO, every ten seconds.
        eventually_within(LONG, "it knows the replica", || {
            fs::read_to_string(&conf).is_ok_and(|conf| conf.contains("known-replica"))
        });
        Self {
            process,
            port,
            conf,
        }
    }
}

/// Sentinel closes connections when it changes roles.
fn ask<T: redis::FromRedisValue>(port: u16, line: &str) -> redis::RedisResult<T> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut connection = redis::Client::open(("127.0.0.1", port))?.get_connection()?;
    redis::cmd(words[0]).arg(&words[1..]).query(&mut connection)
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.conf);
    }
}

fn is(server: &Server, role: &str) -> bool {
    let reply: redis::RedisResult<Vec<Value>> = ask(server.port(), "ROLE");
    let first = reply.ok().and_then(|reply| reply.into_iter().next());
    let name = first.and_then(|first| redis::from_redis_value::<String>(first).ok());
    name.as_deref() == Some(role)
}

fn becomes(server: &Server, role: &str) {
    eventually_within(LONG, role, || is(server, role));
}

#[test]
#[ignore = "measures"]
fn what_a_master_grants_after_a_stop_until_it_is_notified() {
    const WAITERS: usize = 100;
    let (server, replica) = pair(&[]);
    let _sentinel = Sentinel::of(&server, &replica);
    let mut waiters = waited_for(&server, WAITERS);
    let stopped = now_ms();
    server.pause_process();
    becomes(&replica, "master");
    pass(stopped + 6000);
    server.resume_process();
    let woken = now_ms();
    becomes(&server, "slave");
    let told = now_ms() - woken;
    let count = granted(&mut waiters, Duration::from_millis(1));
    println!("after a stop of 6 s: {count} of {WAITERS} granted; a replica {told} ms after waking");
}

#[test]
#[ignore = "measures"]
fn how_long_two_masters_grant_in_a_failover_that_was_asked_for() {
    for how in [
        "SENTINEL FAILOVER m",
        "SENTINEL FAILOVER m COORDINATED",
        "FAILOVER TO",
    ] {
        let (server, replica) = pair(&[]);
        let sentinel = how.starts_with("SENTINEL");
        let sentinel = sentinel.then(|| Sentinel::of(&server, &replica));
        let (port, line) = match &sentinel {
            Some(sentinel) => (sentinel.port, how.to_owned()),
            None => (server.port(), format!("{how} 127.0.0.1 {}", replica.port())),
        };
        let mut refused = None;
        // First it wants to have heard of the replica lately.
        let begun = poll(LONG, || match ask::<Value>(port, &line) {
            Ok(_) => Some(true),
            Err(error) if error.to_string().contains("NOGOODSLAVE") => None,
            Err(error) => {
                refused = Some(error);
                Some(false)
            }
        });
        if begun != Some(true) {
            println!("{how}: {refused:?}");
            continue;
        }
        let (mut twice, mut tried, start) = (0, 0, now_ms());
        let mut last = start;
        while !is(&server, "slave") && now_ms() < start + 30_000 {
            tried += 1;
            let lock = |server: &Server| {
                let line = format!("RLOCK.ACQUIRE k{tried} a 100000");
                ask::<i64>(server.port(), &line).is_ok()
            };
            if lock(&server) && lock(&replica) {
                (twice, last) = (twice + 1, now_ms());
            }
            pass(now_ms() + 20);
        }
        println!(
            "{how}: {twice} of {tried} locks held twice, until {} ms after it",
            last - start
        );
    }
}
