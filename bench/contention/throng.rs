//! A hundred readers and writers of one lock, and a thousand clients with many locks: each
//! asks for its next as soon as it is granted one.

use std::time::{Duration, Instant};

use super::evenness;
use crate::load::{command, integer, Connection, Expect, Outcome, Poller, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table};
use crate::stats::median;

const LEASE: &str = "30000";

/// A server that grants to nobody for this long has lost a grant.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many of a hundred want to READ.
const READERS: [u64; 2] = [90, 50];
const CLIENTS: usize = 100;

const MANY_KEYS: [usize; 2] = [1_000, 10_000];
const MANY_CLIENTS: usize = 1_000;

const MIXED_NOTES: [&str; 4] = [
    "100 clients block, a connection each; every time it is drawn anew whether a client wants",
    "READ or WRITE. It sends RELEASE and its next ACQUIRE in one write once it is granted the",
    "lock. Neighbouring readers are granted together. Medians over turns; Jain's index is of all",
    "grants of each client.",
];

const KEYS_NOTES: [&str; 3] = [
    "1,000 clients block, a connection each: acquire, release at once, and the next lock, at",
    "random. RELEASE and the next ACQUIRE go in one write, one client thread serves all, so a",
    "client has one request at a time. Medians over turns.",
];

/// Measures both and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let columns = ["of READ", "grants/s", "Jain"];
    let mut table = Table::new("Readers and writers of one lock", &columns);
    for readers in READERS {
        let wants = |random: u64| match random % 100 < readers {
            true => ("shared".to_owned(), Some("READ")),
            false => ("shared".to_owned(), Some("WRITE")),
        };
        let (rate, evenness) = run(options, CLIENTS, wants)?;
        table.row([
            format!("{readers} %"),
            grouped(rate),
            format!("{evenness:.4}"),
        ]);
    }
    MIXED_NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);

    let columns = ["locks", "pairs/s", "Jain"];
    let mut table = Table::new("Many clients, many locks", &columns);
    let clients = options.count(MANY_CLIENTS, MANY_CLIENTS / 10);
    for keys in MANY_KEYS {
        let wants = |random: u64| (format!("one-of-many:{}", random % keys as u64), None);
        let (rate, evenness) = run(options, clients, wants)?;
        table.row([
            grouped(keys as f64),
            grouped(rate),
            format!("{evenness:.4}"),
        ]);
    }
    KEYS_NOTES.iter().for_each(|note| table.note(*note));
    report.print(&table);
    Ok(())
}

/// What a client wants next: a lock, and a mode.
trait Wants: Fn(u64) -> (String, Option<&'static str>) {}
impl<F: Fn(u64) -> (String, Option<&'static str>)> Wants for F {}

/// Grants a second, and how evenly they were spread.
fn run(options: &Options, clients: usize, wants: impl Wants) -> Outcome<(f64, f64)> {
    let server = Server::start(&options.server, options.module.as_deref())?;
    let mut throng = Throng::start(&server, clients, wants)?;
    throng.run(options.millis(300, 100))?;
    throng.grants_of.fill(0);
    let mut rates = Vec::new();
    for _ in 0..options.count(10, 2) {
        rates.push(throng.run(options.millis(400, 150))?);
    }
    Ok((median(&rates), evenness(&throng.grants_of)))
}

/// One that acquires and releases.
struct Client {
    connection: Connection,
    owner: String,
    /// The RELEASE of what it asked for.
    release: Vec<u8>,
    /// The reply to a RELEASE comes before that to its ACQUIRE.
    releasing: bool,
}

/// All of them. Between two runs the server's replies wait.
struct Throng<W> {
    clients: Vec<Client>,
    poller: Poller,
    ready: Vec<usize>,
    wants: W,
    random: u64,
    grants_of: Vec<u64>,
}

impl<W: Wants> Throng<W> {
    fn start(server: &Server, count: usize, wants: W) -> Outcome<Self> {
        let mut throng = Throng {
            clients: Vec::with_capacity(count),
            poller: Poller::new()?,
            ready: Vec::new(),
            wants,
            random: 0x9E37_79B9_7F4A_7C15,
            grants_of: vec![0; count],
        };
        for number in 0..count {
            let connection = server.connect_small()?;
            throng.poller.watch(&connection, number)?;
            throng.clients.push(Client {
                connection,
                owner: format!("client:{number}"),
                release: Vec::new(),
                releasing: false,
            });
        }
        for number in 0..count {
            throng.ask(number)?;
        }
        Ok(throng)
    }

    /// Grants a second.
    fn run(&mut self, time: Duration) -> Outcome<f64> {
        let start = Instant::now();
        let mut grants = 0;
        while start.elapsed() < time {
            let mut ready = std::mem::take(&mut self.ready);
            self.poller.wait(PATIENCE, &mut ready)?;
            if ready.is_empty() {
                return Err("nobody was granted a lock".into());
            }
            for &number in &ready {
                grants += self.take(number)?;
            }
            self.ready = ready;
        }
        Ok(f64::from(grants) / start.elapsed().as_secs_f64())
    }

    /// How many grants have come on a connection.
    fn take(&mut self, number: usize) -> Outcome<u32> {
        self.clients[number].connection.receive()?;
        let mut grants = 0;
        loop {
            let client = &mut self.clients[number];
            let Some(reply) = client.connection.received()? else {
                return Ok(grants);
            };
            if client.releasing {
                Expect::Exactly(":0\r\n").check(reply)?;
                client.releasing = false;
                continue;
            }
            integer(reply)?;
            grants += 1;
            self.grants_of[number] += 1;
            self.ask(number)?;
        }
    }

    /// Releases what it has, and asks for the next.
    fn ask(&mut self, number: usize) -> Outcome<()> {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let (key, mode) = (self.wants)(self.random);
        let client = &mut self.clients[number];
        let acquire = ["RLOCK.ACQUIRE", &key, &client.owner, LEASE];
        let release = ["RLOCK.RELEASE", &key, &client.owner];
        let mode = mode.as_slice();
        let acquire = command(&[&acquire[..], mode, &["BLOCK", "0"]].concat());
        let release = command(&[&release[..], mode].concat());
        client.releasing = !client.release.is_empty();
        let before = std::mem::replace(&mut client.release, release);
        client.connection.send(&[before, acquire].concat())
    }
}
