//! A lock, and a crowd that wants it.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::times;
use super::waited::Waited;
use crate::load::{command, integer, Connection, Granted, Outcome, Poller, Server, Session, Setup};
use crate::options::Options;

/// A server that grants to nobody for this long has lost a grant.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longer than the turns of all others take, for it rests meanwhile.
const LEASE: &str = "600000";

/// How the crowd waits.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// Each blocked, on a connection of its own.
    Block,
    /// All of them queued by one connection, which releases too.
    Queue,
    /// Each blocked, for the only permit of a lock with the limit 1.
    Permit,
    /// Each blocked, by the least module, which only has writes counted, as rlock does where
    /// nobody keeps a record.
    Least,
    /// The same, where it replicates all writes whether anybody keeps a record or not.
    LeastReplicated,
}

impl Way {
    /// ACQUIRE with BLOCK, and RELEASE, as bytes.
    fn requests(self, key: &str, owner: &str) -> (Vec<u8>, Vec<u8>) {
        let (limit, permit): (&[&str], &[&str]) = match self {
            Way::Permit => (&["LIMIT", "1"], &["PERMITS"]),
            _ => (&[], &[]),
        };
        let [acquire, release] = match self.is_least() {
            false => ["RLOCK.ACQUIRE", "RLOCK.RELEASE"],
            true => ["LEAST.ACQUIRE", "LEAST.RELEASE"],
        };
        let acquire = [acquire, key, owner, LEASE, "BLOCK", "0"];
        let release = [release, key, owner];
        (
            command(&[&acquire[..], limit].concat()),
            command(&[&release[..], permit].concat()),
        )
    }

    fn is_least(self) -> bool {
        matches!(self, Way::Least | Way::LeastReplicated)
    }

    /// A server with the module that it takes.
    pub fn server(self, options: &Options) -> Outcome<Server> {
        let (module, words): (_, &[&str]) = match self {
            Way::Block | Way::Queue | Way::Permit => (&options.module, &[]),
            Way::Least => (&options.least, &["verbatim"]),
            Way::LeastReplicated => (&options.least, &[]),
        };
        let setup = Setup {
            module: module.as_deref(),
            words,
            ..Setup::default()
        };
        Server::start_as(&options.server, setup)
    }
}

/// One that acquires, releases at once, and queues up again.
struct Contender {
    /// Which connection is its.
    line: usize,
    /// RELEASE and the next ACQUIRE, as bytes.
    release_and_queue: Vec<u8>,
}

/// A connection of contenders.
struct Line {
    connection: Connection,
    /// Whose is a grant that comes as a reply.
    first: usize,
    /// So many of the next replies are those to RELEASE.
    releasing: usize,
}

/// All contenders of one lock. Between two runs it rests with its holder.
pub struct Contest {
    contenders: Vec<Contender>,
    lines: Vec<Line>,
    poller: Poller,
    ready: Vec<usize>,
    /// Who has been granted the lock and has not sent its release.
    holders: Vec<usize>,
    last_token: i64,
    released: Instant,
    grants: usize,
    /// Of each contender.
    pub grants_of: Vec<u64>,
    /// From the moment a RELEASE is sent to the moment the next grant is read.
    pub times: Histogram<u64>,
    pub waited: Waited,
    violations: usize,
}

impl Contest {
    /// Connects all contenders and lets them queue up.
    pub fn start(server: &Server, count: usize, way: Way) -> Outcome<Self> {
        Self::start_beside(server, count, way, 0)
    }

    /// The same where so many wait for other locks.
    pub fn start_beside(server: &Server, count: usize, way: Way, others: usize) -> Outcome<Self> {
        let mut contest = Contest {
            contenders: Vec::with_capacity(count),
            lines: Vec::new(),
            poller: Poller::new()?,
            ready: Vec::new(),
            holders: Vec::new(),
            last_token: 0,
            released: Instant::now(),
            grants: 0,
            grants_of: vec![0; count],
            times: times()?,
            waited: Waited::new(count),
            violations: 0,
        };
        let key = format!("contended:{count}");
        let session = match way {
            Way::Queue => Some(Session::on(server.connect()?)?),
            _ => None,
        };
        let mut acquires = Vec::with_capacity(count);
        for number in 0..count {
            let owner = format!("contender:{number}");
            let (acquire, release) = way.requests(&key, &owner);
            let acquire = match &session {
                None => acquire,
                Some(session) => session.wait(&key, &owner, [LEASE, "0"], number),
            };
            contest.contenders.push(Contender {
                line: if session.is_some() { 0 } else { number },
                release_and_queue: [&release[..], &acquire].concat(),
            });
            acquires.push(acquire);
        }
        if let Some(session) = session {
            contest.connect(session.connection, 0)?;
        } else {
            for number in 0..count {
                contest.connect(server.connect_small()?, number)?;
            }
        }
        for (contender, acquire) in contest.contenders.iter().zip(&acquires) {
            contest.lines[contender.line].connection.send(acquire)?;
        }
        contest.await_grant()?;
        // Who stands still outside is not of the crowd.
        let mut control = server.connect()?;
        let waiting = match way.is_least() {
            false => ["rlock", "rlock_waiting"],
            true => ["clients", "blocked_clients"],
        };
        let [section, field] = waiting;
        while control.info_number(section, field)? < (others + count - 1) as f64 {}
        Ok(contest)
    }

    fn connect(&mut self, connection: Connection, first: usize) -> Outcome<()> {
        self.poller.watch(&connection, self.lines.len())?;
        self.lines.push(Line {
            connection,
            first,
            releasing: 0,
        });
        Ok(())
    }

    /// Hands the lock over as fast as it goes; gives hand-overs per second.
    pub fn run(&mut self, time: Duration) -> Outcome<f64> {
        let before = self.grants;
        let start = Instant::now();
        self.waited.go();
        while start.elapsed() < time {
            self.release()?;
            self.await_grant()?;
        }
        self.waited.rest();
        let count = self.grants - before;
        Ok(count as f64 / start.elapsed().as_secs_f64())
    }

    /// Holds the lock for a while at each of `count` grants, and looks whether
    /// anybody else is granted it meanwhile.
    pub fn hold_each(&mut self, count: usize, time: Duration) -> Outcome<()> {
        for _ in 0..count {
            self.release()?;
            self.await_grant()?;
            let end = Instant::now() + time;
            while Instant::now() < end {
                self.read(Duration::from_millis(1))?;
            }
        }
        Ok(())
    }

    /// What was so far does not count.
    pub fn forget(&mut self) {
        self.grants = 0;
        self.grants_of.fill(0);
        self.times.reset();
        self.waited.forget();
    }

    /// Goes on until all can have had equally many grants.
    pub fn finish_round(&mut self) -> Outcome<()> {
        while !self.grants.is_multiple_of(self.contenders.len()) {
            self.release()?;
            self.await_grant()?;
        }
        Ok(())
    }

    /// Gives how often mutual exclusion was violated.
    pub fn end(mut self) -> Outcome<usize> {
        self.hold_each(1, Duration::from_millis(20))?;
        Ok(self.violations)
    }

    /// Every holder releases the lock and queues up behind the others.
    fn release(&mut self) -> Outcome<()> {
        self.released = Instant::now();
        for holder in self.holders.drain(..) {
            let contender = &self.contenders[holder];
            let line = &mut self.lines[contender.line];
            line.releasing += 1;
            self.waited.begins(holder);
            line.connection.send(&contender.release_and_queue)?;
        }
        Ok(())
    }

    fn await_grant(&mut self) -> Outcome<()> {
        let start = Instant::now();
        while self.holders.is_empty() {
            match &self.lines[..] {
                // Reading waits by itself.
                [_] => self.take(0)?,
                _ => self.read(PATIENCE)?,
            }
            if start.elapsed() > PATIENCE {
                return Err("nobody was granted a free lock".into());
            }
        }
        Ok(())
    }

    /// Reads all that has come, before anything is sent: so two grants at a
    /// time are seen as two.
    fn read(&mut self, patience: Duration) -> Outcome<()> {
        let mut ready = std::mem::take(&mut self.ready);
        self.poller.wait(patience, &mut ready)?;
        for &number in &ready {
            self.take(number)?;
        }
        self.ready = ready;
        Ok(())
    }

    /// What has come on a connection.
    fn take(&mut self, number: usize) -> Outcome<()> {
        let line = &mut self.lines[number];
        line.connection.receive()?;
        while let Some(reply) = line.connection.received()? {
            let Granted { tag, token } = match Granted::read(reply)? {
                Some(granted) => granted,
                None if reply == b"+QUEUED\r\n" => continue,
                None if line.releasing > 0 => {
                    line.releasing -= 1;
                    match integer(reply)? {
                        0 => continue,
                        left => return Err(format!("{left} holds are left of one").into()),
                    }
                }
                None => Granted {
                    tag: line.first,
                    token: integer(reply)?,
                },
            };
            self.grants += 1;
            self.grants_of[tag] += 1;
            self.waited.ends(tag);
            let time = self.released.elapsed();
            self.times.saturating_record(time.as_nanos() as u64);
            if !self.holders.is_empty() || token <= self.last_token {
                self.violations += 1;
            }
            self.last_token = token;
            self.holders.push(tag);
        }
        Ok(())
    }
}
