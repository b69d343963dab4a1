//! A process that says nothing any more loses what somebody waits for, and learns it when it wakes.

use std::io::{BufRead, BufReader, Write, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rlock_client::{Error, Locks, Reason, blocking};

use crate::proxy::Proxy;
use crate::server::{PATIENCE, Server, client, ms, s, soon, until};

const PORT: &str = "RLOCK_TEST_PORT";

/// Longer than a server stands still on a busy machine: with an answer that late the connection is lost.
const SHORT: Duration = s(4);

/// This program once more, which holds a lock.
struct Holder {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Holder {
    fn start(server: &Server, patience: Option<Duration>, lease: Duration) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "silent::the_holder", "--nocapture"])
            .env(PORT, server.port.to_string())
            .env(
                "PATIENCE",
                patience.unwrap_or_default().as_millis().to_string(),
            )
            .env("LEASE", lease.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        let mut holder = Self { process, to, from };
        holder.says("holds");
        holder
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a signal to a child that was not waited for yet.
        unsafe { libc::kill(self.process.id() as i32, signal) };
    }

    /// Among what the test runner says.
    fn says(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert_ne!(
                self.from.read_line(&mut line).unwrap(),
                0,
                "it ended before {what}"
            );
        }
    }

    fn releases(mut self, end: &str) {
        writeln!(self.to, "release").unwrap();
        self.says(end);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[test]
fn the_holder() {
    let Ok(port) = std::env::var(PORT) else {
        return;
    };
    let time = |name| ms(std::env::var(name).unwrap().parse().unwrap());
    let patience = Some(time("PATIENCE")).filter(|time| !time.is_zero());
    let locks = blocking::Locks::with_timeout(client(port.parse().unwrap()), PATIENCE);
    let locks = locks.patience(patience).unwrap();
    let hold = locks.acquire("jobs").lease(time("LEASE")).get().unwrap();
    hold.on_lost(|reason| println!("lost {reason}"));
    println!("holds");
    stdin().read_line(&mut String::new()).unwrap();
    println!("released {:?}", hold.release());
}

#[tokio::test]
async fn it_loses_what_somebody_waits_for() {
    let server = Server::start();
    let mut holder = Holder::start(&server, Some(s(2)), SHORT);
    let waits = tokio::spawn(server.locks().acquire("jobs").wait(s(60)).into_future());
    server.waiting("jobs", 1).await;
    holder.signal(libc::SIGSTOP);
    let begun = Instant::now();
    let hold = soon(waits).await.unwrap().unwrap();
    assert!(begun.elapsed() < s(2 + 20), "{:?}", begun.elapsed());
    holder.signal(libc::SIGCONT);
    holder.says("lost silent");
    holder.releases("released Err(Lost(Silent))");
    assert!(!hold.is_lost());
    assert_eq!(hold.release().await, Ok(()));
}

#[tokio::test]
async fn it_loses_nothing_within_its_patience() {
    let server = Server::start();
    let holder = Holder::start(&server, Some(s(60)), SHORT);
    let waits = tokio::spawn(server.locks().acquire("jobs").wait(s(120)).into_future());
    server.waiting("jobs", 1).await;
    holder.signal(libc::SIGSTOP);
    tokio::time::sleep(s(6)).await;
    assert!(!waits.is_finished());
    holder.signal(libc::SIGCONT);
    holder.releases("released Ok(())");
    assert_eq!(soon(waits).await.unwrap().unwrap().release().await, Ok(()));
}

#[tokio::test]
async fn it_loses_nothing_that_nobody_waits_for() {
    let server = Server::start();
    let holder = Holder::start(&server, Some(s(1)), SHORT);
    holder.signal(libc::SIGSTOP);
    tokio::time::sleep(s(6)).await;
    holder.signal(libc::SIGCONT);
    holder.releases("released Ok(())");
}

#[tokio::test]
async fn it_loses_nothing_without_a_patience() {
    let server = Server::start();
    let holder = Holder::start(&server, None, SHORT);
    let waits = tokio::spawn(server.locks().acquire("jobs").wait(s(60)).into_future());
    server.waiting("jobs", 1).await;
    holder.signal(libc::SIGSTOP);
    tokio::time::sleep(s(6)).await;
    assert!(!waits.is_finished());
    holder.signal(libc::SIGCONT);
    holder.releases("released Ok(())");
    assert_eq!(soon(waits).await.unwrap().unwrap().release().await, Ok(()));
}

/// How often the clients have said it.
fn said(proxy: &Proxy, what: &str) -> usize {
    format!("\n{}", proxy.asked())
        .matches(&format!("\n{what}\n"))
        .count()
}

#[tokio::test]
async fn the_server_is_told_the_patience_or_the_longest_lease_that_it_renews() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    let hold = locks.acquire("jobs").lease(s(6)).await.unwrap();
    let plain = locks.acquire("plain").plain().lease(s(50)).await.unwrap();
    let long = locks.acquire("long").lease(s(40)).await.unwrap();
    until(|| said(&proxy, "RLOCK.HEARTBEAT\n40000") > 1).await;
    long.release().await.unwrap();
    let before = said(&proxy, "RLOCK.HEARTBEAT\n30000");
    until(|| said(&proxy, "RLOCK.HEARTBEAT\n30000") > before).await;
    hold.renew(s(35)).await.unwrap();
    let short = locks.acquire("short").lease(s(5)).await.unwrap();
    until(|| said(&proxy, "RLOCK.HEARTBEAT\n35000") > 0).await;
    assert_eq!(said(&proxy, "PING"), 0);
    for hold in [hold, plain, short] {
        assert_eq!(hold.release().await, Ok(()));
    }
}

#[tokio::test]
async fn the_first_word_of_each_connection_is_the_patience() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port)).patience(ms(4_321)).unwrap();
    for _ in 0..2 {
        let acquire = locks.acquire("jobs").wait(s(20)).lease(s(3));
        let hold = soon(acquire).await.unwrap();
        proxy.close();
        soon(hold.lost()).await;
    }
    let asked = proxy.asked().replace("INFO\nRLOCK.ACQUIRE\n", "");
    let connections: Vec<_> = asked.split("\nSUBSCRIBE\n").skip(1).collect();
    assert!(connections.len() >= 2, "{asked}");
    // The last one may have been made just now.
    for said in connections.iter().filter(|said| said.contains("RLOCK.")) {
        let first = said.find("RLOCK.");
        assert_eq!(first, said.find("RLOCK.HEARTBEAT\n4321\n"), "{asked}");
    }
}

#[tokio::test]
async fn without_a_patience_it_says_ping() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port)).patience(None).unwrap();
    let hold = locks.acquire("jobs").lease(SHORT).await.unwrap();
    until(|| said(&proxy, "PING") > 3).await;
    assert!(!proxy.asked().contains("HEARTBEAT"));
    assert_eq!(hold.release().await, Ok(()));
}

/// It says PING, and is alive by that.
async fn goes_on_by_ping(proxy: &Proxy, what: &str) {
    let locks = Locks::new(client(proxy.port));
    let hold = locks.acquire("jobs").lease(SHORT).await.unwrap();
    until(|| said(proxy, "PING") > 4).await;
    // Others may be sent before the first is answered.
    assert!((1..=3).contains(&proxy.asked().matches(what).count()));
    assert!(!hold.is_lost());
    assert_eq!(hold.release().await, Ok(()));
}

#[tokio::test]
async fn a_server_that_does_not_know_heartbeat_has_ping() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    proxy.unknown("RLOCK.HEARTBEAT", "RLOCK.HEARTBEET");
    goes_on_by_ping(&proxy, "RLOCK.HEARTBEET").await;
}

#[tokio::test]
async fn who_may_not_say_heartbeat_says_ping_on_that_connection() {
    let server = Server::start();
    server.ask::<String>("ACL SETUSER default -rlock.heartbeat");
    let proxy = Proxy::before(server.port).await;
    goes_on_by_ping(&proxy, "RLOCK.HEARTBEAT").await;
    // On the next one it may.
    let locks = Locks::new(client(proxy.port));
    let hold = locks.acquire("jobs").lease(s(3)).await.unwrap();
    server.ask::<String>("ACL SETUSER default +rlock.heartbeat");
    proxy.close();
    assert_eq!(soon(hold.lost()).await, Reason::Connection);
    let before = said(&proxy, "RLOCK.HEARTBEAT\n30000");
    let hold = soon(locks.acquire("jobs").wait(s(20)).lease(SHORT))
        .await
        .unwrap();
    until(|| said(&proxy, "RLOCK.HEARTBEAT\n30000") > before + 3).await;
    assert_eq!(hold.release().await, Ok(()));
}

#[tokio::test]
async fn a_patience_is_longer_than_nothing() {
    let locks = Locks::new(client(1));
    let error = locks.patience(Duration::ZERO).unwrap_err();
    assert!(
        matches!(&error, Error::Argument(why) if why.contains("patience")),
        "{error}"
    );
}
