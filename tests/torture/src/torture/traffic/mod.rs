//! A client process: some lanes, each of them one client with its connections, in
//! one loop. It is told by lines on its standard input when to rest, go on and end.

mod abort;
mod conn;
mod draw;
mod lane;
pub mod names;
mod out;
mod session;

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::history::{End, Record, Recorder, Stall};

use conn::Conn;
use lane::{Held, Lane};
use session::{Session, Who};

/// What a client process is to do.
#[derive(Clone, Debug)]
pub struct Orders {
    pub process: u32,
    pub seed: u64,
    pub lanes: u32,
    /// The first is the master, or the first node.
    pub ports: Vec<u16>,
    pub cluster: bool,
    pub dbs: bool,
    pub file: PathBuf,
    /// For how many replicas a holder waits before it begins; 0: it does not.
    pub wait: u32,
}

/// What the lanes of a process share.
pub struct Shared {
    process: u32,
    ports: Vec<u16>,
    routes: HashMap<String, u16>,
    tags: &'static [&'static str],
    orphans: VecDeque<(u64, u32, Held)>,
    /// Some of the blocked waiters, or who were: the words that call them off.
    waits: VecDeque<String>,
    conns: u32,
    wait: u32,
}

impl Shared {
    fn next_conn(&mut self) -> u32 {
        self.conns += 1;
        self.process * 1_000_000 + self.conns
    }

    fn port_of(&self, key: &str) -> u16 {
        let routed = self.routes.get(names::tag_of(key));
        routed.copied().unwrap_or(self.ports[0])
    }

    fn route(&mut self, tag: &str, port: u16) {
        self.routes.insert(tag.to_owned(), port);
    }

    /// Holds that nobody has in mind any more, but whose lease is long. They are
    /// released twice, for the request that took them may be still under way.
    fn orphans(&mut self, holds: impl Iterator<Item = Held>) {
        let due = now_us() + 200_000;
        self.orphans.extend(holds.map(|held| (due, 2, held)));
    }

    /// Somebody else may call off this wait.
    fn waits(&mut self, args: &[String]) {
        let blocks = args.iter().any(|word| word == "BLOCK");
        if args[0] == "RLOCK.ACQUIRE" && blocks && args[2] != "*" {
            self.waits.push_back(format!("{} {}", args[1], args[2]));
            if self.waits.len() > 8 {
                self.waits.pop_front();
            }
        }
    }

    fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    fn orphan(&mut self) -> Option<Held> {
        let (due, tries, held) = self.orphans.pop_front()?;
        if due > now_us() {
            self.orphans.push_front((due, tries, held));
            return None;
        }
        if tries > 1 {
            let due = now_us() + 400_000;
            self.orphans.push_back((due, tries - 1, held.clone()));
        }
        Some(held)
    }
}

/// One that asks by itself, with the connections that it has for that.
trait Party {
    fn conns(&self) -> Vec<&Conn>;
    /// When it will do something next; never, while it waits for replies.
    fn due(&self) -> u64;
    fn rests(&self) -> bool;
    fn act(&mut self, shared: &mut Shared, to: &mut Recorder) -> io::Result<()>;
    /// Reads what has come on a connection.
    fn read(&mut self, at: usize, shared: &mut Shared, to: &mut Recorder) -> io::Result<()>;
    /// Ends all connections; with what was not answered as `end` says.
    fn end_all(
        &mut self,
        end: End,
        hard: bool,
        shared: &mut Shared,
        to: &mut Recorder,
    ) -> io::Result<()>;
    /// The last things before a rest: gives back what it holds, and leaves.
    fn wind_up(&mut self, shared: &mut Shared, to: &mut Recorder) -> io::Result<()>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Busy,
    Resting { since: u64, told: bool },
}

struct Process {
    shared: Shared,
    lanes: Vec<Box<dyn Party>>,
    state: State,
    to: Recorder,
}

/// For how long a rest may take before what is open counts as never answered.
const REST_US: u64 = 12_000_000;
/// From here on a turn of the loop counts as a stall.
const STALL_US: u64 = 150_000;
const TURN_MS: u64 = 10;
/// In each process, beside the lanes.
const SESSIONS: u32 = 1;

pub fn run(orders: &Orders) -> io::Result<()> {
    let mut rng = Rng::with_seed(orders.seed);
    let lanes = (0..orders.lanes).map(|number| {
        let db = u32::from(orders.dbs && rng.u32(0..4) == 0);
        Box::new(Lane::new(number, number == 0, db, rng.fork())) as Box<dyn Party>
    });
    let mut lanes: Vec<Box<dyn Party>> = lanes.collect();
    for number in 0..SESSIONS {
        let db = u32::from(orders.dbs && rng.u32(0..4) == 0);
        lanes.push(Box::new(Session::new(Who::Some, number, db, rng.fork())));
    }
    // Very many who wait, in two of the processes: one owner must not wait for another of
    // its kind, and that for it.
    let crowd = match orders.process {
        1 => Some(Who::One),
        2 => Some(Who::Crowd),
        _ => None,
    };
    lanes.extend(crowd.map(|who| Box::new(Session::new(who, SESSIONS, 0, rng.fork())) as _));
    let shared = Shared {
        process: orders.process,
        ports: orders.ports.clone(),
        routes: HashMap::new(),
        tags: names::tags(orders.cluster),
        orphans: VecDeque::new(),
        waits: VecDeque::new(),
        conns: 0,
        wait: orders.wait,
    };
    let mut process = Process {
        shared,
        lanes,
        state: State::Busy,
        to: Recorder::create(&orders.file)?,
    };
    process.work()
}

impl Process {
    fn work(&mut self) -> io::Result<()> {
        let mut heard = String::new();
        loop {
            let before = now_us();
            let orders = self.wait()?;
            let turn = now_us() - before;
            if turn > STALL_US + TURN_MS * 1000 {
                let who = format!("client {}", self.shared.process);
                let (from, to) = (before, now_us());
                self.to.write(&Record::Stall(Stall { who, from, to }))?;
            }
            if orders && !self.hear(&mut heard)? {
                break;
            }
            self.act()?;
        }
        for mut lane in std::mem::take(&mut self.lanes) {
            lane.end_all(End::Open, false, &mut self.shared, &mut self.to)?;
        }
        self.to.flush()
    }

    /// Waits for replies and reads them; whether there is word from above.
    fn wait(&mut self) -> io::Result<bool> {
        let poll = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut fds = vec![poll(io::stdin().as_raw_fd())];
        let mut whose = Vec::new();
        for (at, lane) in self.lanes.iter().enumerate() {
            for (nth, conn) in lane.conns().into_iter().enumerate() {
                fds.push(poll(conn.fd()));
                whose.push((at, nth));
            }
        }
        let due = self
            .lanes
            .iter()
            .map(|lane| lane.due())
            .min()
            .unwrap_or(u64::MAX);
        let ms = (due.saturating_sub(now_us()) / 1000).min(TURN_MS);
        // SAFETY: the array is ours and as long as it is said to be.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ms as i32) };
        // The last first: one that is closed does not shift those still to come.
        for (fd, (at, nth)) in fds[1..].iter().zip(whose).rev() {
            if fd.revents != 0 {
                self.lanes[at].read(nth, &mut self.shared, &mut self.to)?;
            }
        }
        Ok(fds[0].revents != 0)
    }

    /// False: the end.
    fn hear(&mut self, heard: &mut String) -> io::Result<bool> {
        let mut bytes = [0; 256];
        let got = io::stdin().lock().read(&mut bytes)?;
        heard.push_str(&String::from_utf8_lossy(&bytes[..got]));
        while let Some(end) = heard.find('\n') {
            let line: String = heard.drain(..=end).collect();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["rest"] => {
                    let since = now_us();
                    self.state = State::Resting { since, told: false };
                }
                ["go"] => self.state = State::Busy,
                ["master", port] => {
                    let port = port.parse().unwrap_or(self.shared.ports[0]);
                    self.shared.ports.sort_by_key(|other| *other != port);
                }
                _ => return Ok(false),
            }
        }
        Ok(got > 0)
    }

    fn act(&mut self) -> io::Result<()> {
        let State::Resting { since, told } = self.state else {
            for lane in &mut self.lanes {
                lane.act(&mut self.shared, &mut self.to)?;
            }
            return Ok(());
        };
        if told {
            return Ok(());
        }
        let late = now_us() > since + REST_US;
        for lane in &mut self.lanes {
            match late {
                true => lane.end_all(End::Open, false, &mut self.shared, &mut self.to)?,
                false => lane.wind_up(&mut self.shared, &mut self.to)?,
            }
        }
        let orphans = self.shared.has_orphans() && !late;
        if !orphans && self.lanes.iter().all(|lane| lane.rests()) {
            self.to.flush()?;
            println!("rests");
            io::stdout().flush()?;
            self.state = State::Resting { since, told: true };
        }
        Ok(())
    }
}
