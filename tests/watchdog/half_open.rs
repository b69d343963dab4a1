//! A peer that is gone without a farewell, as when its power fails: no FIN, no
//! reset. The server's keepalive notices, and the lock is freed.
//!
//! It needs a network of its own whose cable can be pulled: a network namespace,
//! which only root can make. Elsewhere this test says so and does nothing.

use std::fs;
use std::io::{stderr, Write};
use std::process::Command;
use std::time::Duration;

use super::process::holding_process;
use crate::support::{
    eventually, eventually_within, now_ms, pass, signal, token, Server, Waiter, BOUND,
};

/// The server asks a silent peer after a second, and twice more.
const NOTICED: Duration = Duration::from_secs(4);

/// A network namespace with one cable to it, gone at the end.
struct Network {
    name: String,
    inner: String,
    /// The address at this end of the cable.
    address: String,
}

/// Runs `ip` with these words; what it said when that failed.
fn ip(line: &str) -> Result<(), String> {
    let run = Command::new("ip").args(line.split(' ')).output();
    match run {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Network {
    fn make() -> Result<Self, String> {
        let number = std::process::id();
        let name = format!("rlock-test-{number}");
        ip(&format!("netns add {name}"))?;
        let (outer, inner) = (format!("rlo{number}"), format!("rli{number}"));
        // A range that nobody routes; which part of it, the number decides.
        let net = format!("198.18.{}", number % 256);
        let part = number / 256 % 64 * 4;
        let address = format!("{net}.{}", part + 1);
        let network = Self {
            name: name.clone(),
            inner: inner.clone(),
            address: address.clone(),
        };
        for line in [
            format!("link add {outer} type veth peer name {inner} netns {name}"),
            format!("address add {address}/30 dev {outer}"),
            format!("link set {outer} up"),
            format!("-n {name} address add {net}.{}/30 dev {inner}", part + 2),
            format!("-n {name} link set {inner} up"),
            format!("netns exec {name} true"),
        ] {
            ip(&line)?;
        }
        Ok(network)
    }

    fn pull_the_cable(&self) {
        let line = format!("-n {} link set {} down", self.name, self.inner);
        assert_eq!(ip(&line), Ok(()));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The cable goes with it.
        if let Err(why) = ip(&format!("netns del {}", self.name)) {
            let _ = writeln!(stderr(), "the namespace {} is left: {why}", self.name);
        }
    }
}

/// Whether all that the server sent to others by this address has arrived: while
/// something is under way, retransmission decides instead of keepalive.
fn all_arrived(address: &str, port: u16) -> bool {
    let mut octets: Vec<u8> = address
        .split('.')
        .map(|o| o.parse().expect("an octet"))
        .collect();
    octets.reverse();
    let hex: String = octets.iter().map(|octet| format!("{octet:02X}")).collect();
    let local = format!("{hex}:{port:04X}");
    let table = fs::read_to_string("/proc/net/tcp").expect("a table of connections");
    let established = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        (fields[1] == local && fields[3] == "01").then(|| fields[4].to_owned())
    });
    let queues: Vec<_> = established.collect();
    !queues.is_empty() && queues.iter().all(|queue| queue.starts_with("00000000:"))
}

#[test]
fn a_peer_that_vanishes_is_noticed_and_its_lock_freed() {
    let network = match Network::make() {
        Ok(network) => network,
        Err(why) => {
            // Past what the test runner swallows: a test that did nothing says so.
            let _ = writeln!(stderr(), "skipped: no network namespace here: {why}");
            return;
        }
    };
    let server = Server::start_with(&[
        "--bind",
        "127.0.0.1",
        &network.address,
        "--protected-mode",
        "no",
        "--tcp-keepalive",
        "1",
    ]);
    let mut control = server.raw();
    let address = format!("{}:{}", network.address, server.port());
    let request = "RLOCK.ACQUIRE k a 100000 WATCHDOG";
    let wrapper = ["ip", "netns", "exec", &network.name];
    let process = holding_process(&wrapper, &address, request);
    control.goes_to("k", "a exclusive 1");
    let first = control.only("k").token;
    let mut next = Waiter::new(&server, "k", "b");

    // Silent, but there: nothing happens for longer than a vanished peer lasts.
    pass(now_ms() + 6000);
    assert_eq!(control.only("k").token, first);
    assert!(control.watchdog("k").is_some());

    eventually("the reply has arrived", || {
        all_arrived(&network.address, server.port())
    });
    network.pull_the_cable();
    // Nothing of its end reaches the server any more.
    signal(&process.0, libc::SIGKILL);
    let mut granted = None;
    eventually_within(NOTICED + BOUND, "the next is granted", || {
        granted = next.client.read_within(Duration::from_millis(20));
        granted.is_some()
    });
    assert!(Some(token(granted.expect("a reply"))) > first);
    assert_eq!(control.held_by("k"), "b exclusive 1");
    server.alive();
}
