//! A lock, and a crowd that wants it.

use std::time::{Duration, Instant};

use crate::load::{command, integer, Connection, Outcome, Poller, Server};

/// A server that grants to nobody for this long has lost a grant.
const PATIENCE: Duration = Duration::from_secs(10);

/// One connection that acquires, releases at once, and queues up again.
struct Contender {
    connection: Connection,
    /// RELEASE and the next ACQUIRE, as bytes.
    release_and_queue: Vec<u8>,
    /// Whether the next reply is that to RELEASE.
    releasing: bool,
}

/// All contenders of one lock. Between two runs it rests with its holder.
pub struct Contest {
    contenders: Vec<Contender>,
    poller: Poller,
    ready: Vec<usize>,
    /// Who has been granted the lock and has not sent its release.
    holders: Vec<usize>,
    last_token: i64,
    grants: usize,
    violations: usize,
}

impl Contest {
    /// Connects all contenders and lets them queue up.
    pub fn start(server: &Server, count: usize) -> Outcome<Self> {
        let mut contest = Contest {
            contenders: Vec::with_capacity(count),
            poller: Poller::new()?,
            ready: Vec::new(),
            holders: Vec::new(),
            last_token: 0,
            grants: 0,
            violations: 0,
        };
        let key = format!("contended:{count}");
        for number in 0..count {
            let owner = format!("contender:{number}");
            let acquire = command(&["RLOCK.ACQUIRE", &key, &owner, "30000", "BLOCK", "0"]);
            let release = command(&["RLOCK.RELEASE", &key, &owner]);
            let mut connection = server.connect_small()?;
            connection.send(&acquire)?;
            contest.poller.watch(&connection, number)?;
            contest.contenders.push(Contender {
                connection,
                release_and_queue: [release, acquire].concat(),
                releasing: false,
            });
        }
        contest.await_grant()?;
        Ok(contest)
    }

    /// Hands the lock over as fast as it goes; gives hand-overs per second.
    pub fn run(&mut self, time: Duration) -> Outcome<f64> {
        let before = self.grants;
        let start = Instant::now();
        while start.elapsed() < time {
            self.release()?;
            self.await_grant()?;
        }
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

    /// Gives how often mutual exclusion was violated.
    pub fn end(mut self) -> Outcome<usize> {
        self.hold_each(1, Duration::from_millis(20))?;
        Ok(self.violations)
    }

    /// Every holder releases the lock and queues up behind the others.
    fn release(&mut self) -> Outcome<()> {
        for holder in self.holders.drain(..) {
            let contender = &mut self.contenders[holder];
            contender.releasing = true;
            contender.connection.send(&contender.release_and_queue)?;
        }
        Ok(())
    }

    fn await_grant(&mut self) -> Outcome<()> {
        let start = Instant::now();
        while self.holders.is_empty() {
            self.read(PATIENCE)?;
            if self.ready.is_empty() && start.elapsed() > PATIENCE {
                return Err("nobody was granted a free lock".into());
            }
        }
        Ok(())
    }

    /// Reads all that has come, before anything is sent: so two grants at a
    /// time are seen as two.
    fn read(&mut self, patience: Duration) -> Outcome<()> {
        self.poller.wait(patience, &mut self.ready)?;
        for &number in &self.ready {
            let contender = &mut self.contenders[number];
            contender.connection.receive()?;
            while let Some(reply) = contender.connection.received()? {
                let value = integer(reply)?;
                if contender.releasing {
                    contender.releasing = false;
                    if value != 0 {
                        return Err(format!("{value} holds are left of one").into());
                    }
                    continue;
                }
                self.grants += 1;
                if !self.holders.is_empty() || value <= self.last_token {
                    self.violations += 1;
                }
                self.last_token = value;
                self.holders.push(number);
            }
        }
        Ok(())
    }
}
