//! A crowd that contends for one lock by tries: who fails waits for a message, or for a
//! while, and tries again. One thread serves all, as in the contest of rlock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::super::waited::Waited;
use super::ways::{Requests, Way};
use crate::load::{Connection, Outcome, Poller, Server};

/// A crowd in which nobody gets the lock for this long has lost it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who polls looks again after so many ms, at random.
const POLL_MS: std::ops::RangeInclusive<u64> = 1..=10;

/// What a rival waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The reply to its try.
    Trying,
    /// A message, or its time.
    Waiting,
    /// The reply to its release.
    Releasing,
    /// Nothing: it has the lock.
    Holding,
}

struct Rival {
    connection: Connection,
    requests: Requests,
    state: State,
    /// A message came after its try was sent.
    woken: bool,
}

/// All rivals. Between two runs it rests with a holder, or all wait.
pub struct Rivals {
    rivals: Vec<Rival>,
    way: Way,
    poller: Poller,
    ready: Vec<usize>,
    /// When who polls looks again.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    random: u64,
    holder: Option<usize>,
    last: usize,
    resting: bool,
    pub hand_overs: u64,
    pub grants_of: Vec<u64>,
    /// Requests that were sent.
    pub sent: u64,
    pub waited: Waited,
}

/// What a run came to.
pub struct Run {
    pub hand_overs: f64,
    pub grants: f64,
}

impl Rivals {
    /// Connects all; the first takes the lock, the others fail.
    pub fn start(server: &Server, count: usize, way: Way) -> Outcome<Self> {
        let mut rivals = Rivals {
            rivals: Vec::with_capacity(count),
            poller: Poller::new()?,
            ready: Vec::new(),
            due: BinaryHeap::new(),
            random: 0x9E37_79B9_7F4A_7C15,
            holder: None,
            last: 0,
            resting: true,
            hand_overs: 0,
            grants_of: vec![0; count],
            sent: 0,
            waited: Waited::new(count),
            way,
        };
        for number in 0..count {
            let mut connection = server.connect_small()?;
            let requests = rivals.way.join(&mut connection, count, number)?;
            rivals.poller.watch(&connection, number)?;
            connection.send(&requests.take)?;
            rivals.rivals.push(Rival {
                connection,
                requests,
                state: State::Trying,
                woken: false,
            });
        }
        rivals.settle()?;
        Ok(rivals)
    }

    /// Contends for a while, and a grant longer.
    pub fn run(&mut self, time: Duration) -> Outcome<Run> {
        let grants = |rivals: &Self| rivals.grants_of.iter().sum::<u64>();
        let (first, first_grant) = (self.hand_overs, grants(self));
        let start = Instant::now();
        self.resting = false;
        self.waited.go();
        if let Some(holder) = self.holder.take() {
            self.release(holder)?;
        }
        while start.elapsed() < time {
            self.step()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let run = Run {
            hand_overs: (self.hand_overs - first) as f64 / seconds,
            grants: (grants(self) - first_grant) as f64 / seconds,
        };
        self.waited.rest();
        self.resting = true;
        self.settle()?;
        Ok(run)
    }

    /// What was so far does not count.
    pub fn forget(&mut self) {
        self.hand_overs = 0;
        self.grants_of.fill(0);
        self.sent = 0;
        self.waited.forget();
    }

    /// Until nobody is owed a reply.
    fn settle(&mut self) -> Outcome<()> {
        let end = Instant::now() + PATIENCE;
        let owed = |rival: &Rival| matches!(rival.state, State::Trying | State::Releasing);
        while self.rivals.iter().any(owed) {
            self.step()?;
            if Instant::now() > end {
                return Err("a crowd does not come to rest".into());
            }
        }
        Ok(())
    }

    /// Reads what has come, and lets those try whose time it is.
    fn step(&mut self) -> Outcome<()> {
        let mut ready = std::mem::take(&mut self.ready);
        self.poller.wait(Duration::from_millis(1), &mut ready)?;
        for &number in &ready {
            self.take(number)?;
        }
        self.ready = ready;
        let now = Instant::now();
        while !self.resting && self.due.peek().is_some_and(|next| next.0 .0 <= now) {
            let Some(Reverse((_, number))) = self.due.pop() else {
                break;
            };
            self.attempt(number)?;
        }
        Ok(())
    }

    /// What has come on a connection.
    fn take(&mut self, number: usize) -> Outcome<()> {
        self.rivals[number].connection.receive()?;
        loop {
            let rival = &mut self.rivals[number];
            let Some(reply) = rival.connection.received()? else {
                return Ok(());
            };
            let is_message = reply.starts_with(b">");
            match rival.state {
                State::Trying if is_message => rival.woken = true,
                State::Waiting if is_message && !self.resting => self.attempt(number)?,
                // Once it goes on it is to look, since this may have been the last word.
                State::Waiting if is_message => rival.woken = true,
                State::Trying if rival.requests.has_taken(reply) => self.granted(number)?,
                State::Trying => self.failed(number)?,
                State::Releasing if !is_message => {
                    rival.requests.check_release(reply)?;
                    self.waited.begins(number);
                    self.attempt(number)?;
                }
                State::Releasing | State::Holding => {}
                State::Waiting => return Err("a reply that nobody asked for".into()),
            }
        }
    }

    fn attempt(&mut self, number: usize) -> Outcome<()> {
        let rival = &mut self.rivals[number];
        rival.woken = false;
        rival.state = State::Trying;
        self.sent += 1;
        rival.connection.send(&rival.requests.take)
    }

    fn failed(&mut self, number: usize) -> Outcome<()> {
        let rival = &mut self.rivals[number];
        rival.state = State::Waiting;
        if self.way.polls() {
            let wait = Duration::from_millis(self.random_ms());
            self.due.push(Reverse((Instant::now() + wait, number)));
        } else if rival.woken {
            return self.attempt(number);
        }
        Ok(())
    }

    fn granted(&mut self, number: usize) -> Outcome<()> {
        if self.holder.is_some() {
            return Err("two hold a lock of a peer".into());
        }
        self.grants_of[number] += 1;
        self.waited.ends(number);
        self.hand_overs += u64::from(self.last != number);
        self.last = number;
        if self.resting {
            self.rivals[number].state = State::Holding;
            self.holder = Some(number);
            return Ok(());
        }
        self.release(number)
    }

    fn release(&mut self, number: usize) -> Outcome<()> {
        let rival = &mut self.rivals[number];
        rival.state = State::Releasing;
        self.sent += 1;
        rival.connection.send(&rival.requests.give_back)
    }

    /// By xorshift.
    fn random_ms(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        POLL_MS.start() + self.random % (POLL_MS.end() - POLL_MS.start() + 1)
    }
}
