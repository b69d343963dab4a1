//! A server with a crowd on it, and what is done to it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::load::{command, Connection, Outcome, Server, Session};

/// Long enough for everything here, ms.
pub const LONG: &str = "100000000";

/// Commands that go out together.
const GROUP: usize = 250;

/// How long something may take that is waited for: counted, all takes fifty times as long.
const PATIENCE: Duration = Duration::from_secs(900);

/// A server, who asks it, and how many make up the crowd.
pub struct Scene<'a> {
    pub server: &'a Server,
    pub control: Connection,
    /// Who waits by QUEUE, or is told of holds.
    pub sessions: Vec<Session>,
    /// Who is blocked.
    pub blocked: Vec<Connection>,
    pub n: usize,
    /// When leases or waits end, where that is to happen.
    pub ends: Instant,
}

impl<'a> Scene<'a> {
    pub fn on(server: &'a Server, n: usize) -> Outcome<Self> {
        let mut control = server.connect()?;
        // What nobody reads in time is no reason to be cut off.
        let limit = ["client-output-buffer-limit", "pubsub 0 0 0"];
        control.call(&["CONFIG", "SET", limit[0], limit[1]])?;
        Ok(Scene {
            server,
            control,
            sessions: Vec::new(),
            blocked: Vec::new(),
            n,
            ends: Instant::now(),
        })
    }

    /// These, for each number of the crowd, by a client of its own.
    pub fn each(&mut self, build: impl Fn(usize) -> Vec<u8>) -> Outcome<()> {
        pipeline(&mut self.control, 0..self.n, build)
    }

    /// The same by a session; the first that there is, or a new one.
    pub fn each_by_session(&mut self, build: impl Fn(&Session, usize) -> Vec<u8>) -> Outcome<()> {
        if self.sessions.is_empty() {
            self.sessions.push(Session::on(self.server.connect()?)?);
        }
        let session = &mut self.sessions[0];
        for group in ranges(self.n) {
            let commands: Vec<Vec<u8>> = group.map(|number| build(session, number)).collect();
            exchange(&mut session.connection, &commands)?;
        }
        Ok(())
    }

    /// So many single requests of one kind, each when the one before is answered.
    pub fn times(&mut self, times: usize, build: impl Fn(usize) -> Vec<u8>) -> Outcome<usize> {
        for number in 0..times {
            exchange(&mut self.control, &[build(number)])?;
        }
        Ok(times)
    }

    /// One command that must not fail.
    pub fn ask(&mut self, parts: &[&str]) -> Outcome<()> {
        exchange(&mut self.control, &[command(parts)])
    }

    /// Waits until this line of INFO says so many.
    pub fn until(&mut self, field: &str, count: usize) -> Outcome<()> {
        let end = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(2);
        while self.control.info_number("rlock", field)? as usize != count {
            if Instant::now() > end {
                return Err(format!("{field} does not become {count}").into());
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Until nobody waits any more.
    pub fn until_none_waits(&mut self) -> Outcome<()> {
        self.until("rlock_waiting", 0)
    }

    /// Until what the module still does about it is done: where nothing tells.
    pub fn rest(&self) {
        sleep(Duration::from_millis(700));
    }
}

/// Sends commands, and reads as many replies; an error is one.
fn exchange(connection: &mut Connection, commands: &[Vec<u8>]) -> Outcome<()> {
    connection.send(&commands.concat())?;
    let mut left = commands.len();
    while left > 0 {
        let reply = connection.reply()?;
        if reply.starts_with(b"-") {
            return Err(String::from_utf8_lossy(reply).into());
        }
        // The rest are messages.
        left -= usize::from(!reply.starts_with(b">"));
    }
    Ok(())
}

pub fn pipeline(
    connection: &mut Connection,
    numbers: std::ops::Range<usize>,
    build: impl Fn(usize) -> Vec<u8>,
) -> Outcome<()> {
    for group in ranges(numbers.len()) {
        let commands: Vec<Vec<u8>> = group.map(|number| build(numbers.start + number)).collect();
        exchange(connection, &commands)?;
    }
    Ok(())
}

fn ranges(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let starts = (0..count).step_by(GROUP);
    starts.map(move |start| start..count.min(start + GROUP))
}
