//! One client: it asks for locks, holds them for a while, and gives them back, or
//! not.

use std::io;

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::history::{End, Out, Recorder};

use super::conn::{Answer, Args, Conn};
use super::draw::{self, Fate, Wish};
use super::names::tag_of;
use super::{Party, Shared};

/// A lease that long nobody waits for: whoever loses such a hold from sight has it
/// released in another way.
pub const LONG_MS: u64 = 1500;

#[derive(Clone, Debug)]
pub struct Held {
    pub key: String,
    pub owner: String,
    /// Empty: plain.
    pub mode: String,
    pub lease: u64,
    pub watched: bool,
}

pub struct Lane {
    pub rng: Rng,
    pub number: u32,
    /// At most one to each server.
    conns: Vec<Conn>,
    pub holds: Vec<Held>,
    fate: Fate,
    next_at: u64,
    serial: u32,
    db: u32,
    /// A request to be sent again, where the server told to: port, asking, request.
    again: Option<(u16, bool, Args)>,
    watches: bool,
}

impl Lane {
    pub fn new(number: u32, watches: bool, db: u32, mut rng: Rng) -> Self {
        let next_at = now_us() + rng.u64(0..50_000);
        Self {
            rng,
            number,
            conns: Vec::new(),
            holds: Vec::new(),
            fate: Fate::Release,
            next_at,
            serial: 0,
            db,
            again: None,
            watches,
        }
    }

    fn busy(&self) -> bool {
        self.conns.iter().any(Conn::busy)
    }
}

impl Party for Lane {
    fn conns(&self) -> Vec<&Conn> {
        self.conns.iter().collect()
    }

    fn due(&self) -> u64 {
        match self.busy() {
            true => u64::MAX,
            false => self.next_at,
        }
    }

    fn rests(&self) -> bool {
        self.conns.is_empty() && self.holds.is_empty()
    }

    /// Does the next thing, if it is time for it.
    fn act(&mut self, shared: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        if self.busy() || now_us() < self.next_at {
            return Ok(());
        }
        self.next_at = now_us() + self.pause();
        if let Some((port, asking, args)) = self.again.take() {
            if !self.send(port, Wish::one(args.clone()), asking, shared, to)? {
                self.again = Some((port, asking, args));
            }
            return Ok(());
        }
        let wish = if self.watches {
            draw::look(&mut self.rng, shared)
        } else if self.holds.is_empty() {
            if let Some(held) = shared.orphan() {
                return self.give_back(held, shared, to);
            }
            self.begin(shared)
        } else {
            match self.go_on(shared, to)? {
                Some(wish) => wish,
                None => return Ok(()),
            }
        };
        let port = shared.port_of(wish.key());
        self.send(port, wish, false, shared, to).map(drop)
    }

    /// Reads the replies that have come on a connection.
    fn read(&mut self, at: usize, shared: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        let mut answers = Vec::new();
        let open = self.conns[at].read(to, &mut answers)?;
        for answer in answers {
            self.learn(answer, shared);
        }
        if !open {
            self.lose(at, shared, to)?;
        }
        Ok(())
    }

    /// Ends all connections; with what was not answered as `end` says.
    fn end_all(
        &mut self,
        end: End,
        hard: bool,
        shared: &mut Shared,
        to: &mut Recorder,
    ) -> io::Result<()> {
        for conn in std::mem::take(&mut self.conns) {
            self.leave(conn, end, hard, shared, to)?;
        }
        self.again = None;
        Ok(())
    }

    /// The last thing before a rest: gives back what it holds, and leaves.
    fn wind_up(&mut self, shared: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        if self.busy() || now_us() < self.next_at {
            return Ok(());
        }
        self.next_at = now_us() + 3_000;
        self.again = None;
        let Some(held) = self.holds.last().cloned() else {
            return match shared.orphan() {
                Some(held) => self.give_back(held, shared, to),
                None if shared.has_orphans() => Ok(()),
                None => self.close_all(false, shared, to),
            };
        };
        let port = shared.port_of(&held.key);
        let wish = Wish::one(draw::release(&held, true));
        // Whom a release does not reach, nothing helps.
        if self.send(port, wish, false, shared, to)? && self.rng.u32(0..9) == 0 {
            self.holds.pop();
        }
        Ok(())
    }
}

impl Lane {
    fn pause(&mut self) -> u64 {
        match (self.watches, self.rng.u32(0..40)) {
            (true, _) => self.rng.u64(5_000..40_000),
            (_, 0..30) => self.rng.u64(0..4_000),
            (_, 30..38) => self.rng.u64(0..30_000),
            _ => self.rng.u64(0..300_000),
        }
    }

    fn begin(&mut self, shared: &mut Shared) -> Wish {
        self.serial += 1;
        let fresh = format!("o{}-{}-{}", shared.process, self.number, self.serial);
        let (wish, fate) = draw::begin(&mut self.rng, shared, &fresh);
        self.fate = fate;
        wish
    }

    /// The next thing for one that holds something; none if it asks nothing.
    fn go_on(&mut self, shared: &mut Shared, to: &mut Recorder) -> io::Result<Option<Wish>> {
        let held = self.rng.choice(&self.holds).cloned();
        let held = held.expect("it holds something");
        if let Some(wish) = draw::more(&mut self.rng, shared, &held, self.fate) {
            return Ok(wish.into());
        }
        match self.fate {
            Fate::Release => Ok(Some(draw::give_back(&mut self.rng, &self.holds, &held))),
            Fate::Forget => {
                self.holds.clear();
                Ok(None)
            }
            Fate::Crash => {
                let hard = self.rng.bool();
                self.close_all(hard, shared, to)?;
                Ok(None)
            }
        }
    }

    /// Releases a hold; it stays an orphan if that cannot be asked now.
    fn give_back(&mut self, held: Held, shared: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        let port = shared.port_of(&held.key);
        let wish = Wish::one(draw::release(&held, true));
        if !self.send(port, wish, false, shared, to)? {
            shared.orphans(std::iter::once(held));
        }
        Ok(())
    }

    /// Whether it could be sent: there must be a connection first.
    fn send(
        &mut self,
        port: u16,
        wish: Wish,
        asking: bool,
        shared: &mut Shared,
        to: &mut Recorder,
    ) -> io::Result<bool> {
        let at = match self.conns.iter().position(|conn| conn.port == port) {
            Some(at) => at,
            None => {
                let resp3 = self.rng.u32(0..4) == 0;
                match Conn::open(shared.next_conn(), port, self.db, resp3) {
                    Ok(conn) => self.conns.push(conn),
                    Err(_) => self.next_at = now_us() + 50_000,
                }
                return Ok(false);
            }
        };
        if !self.conns[at].ready() {
            return Ok(false);
        }
        wish.requests.iter().for_each(|args| shared.waits(args));
        if self.conns[at]
            .send(&wish.requests, wish.multi, asking)
            .is_err()
        {
            self.lose(at, shared, to)?;
        }
        Ok(true)
    }

    /// The server has closed a connection.
    fn lose(&mut self, at: usize, shared: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        let conn = self.conns.remove(at);
        self.leave(conn, End::Server, false, shared, to)?;
        self.next_at = now_us() + 20_000 + self.rng.u64(0..30_000);
        Ok(())
    }

    fn close_all(&mut self, hard: bool, shared: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        self.end_all(End::Client, hard, shared, to)
    }

    fn leave(
        &mut self,
        conn: Conn,
        end: End,
        hard: bool,
        shared: &mut Shared,
        to: &mut Recorder,
    ) -> io::Result<()> {
        let owner = conn.owner.clone();
        for answer in conn.close(end, hard, to)? {
            if answer.out == Out::Lost {
                let asked = draw::asked(&answer.args, owner.as_deref());
                shared.orphans(asked.into_iter().filter(|held| held.lease > LONG_MS));
            }
            self.learn(answer, shared);
        }
        let holds = std::mem::take(&mut self.holds).into_iter();
        shared.orphans(holds.filter(|held| held.lease > LONG_MS).map(|mut held| {
            if let ("*", Some(owner)) = (held.owner.as_str(), &owner) {
                held.owner.clone_from(owner);
            }
            held
        }));
        Ok(())
    }

    /// Keeps in mind what it holds.
    fn learn(&mut self, answer: Answer, shared: &mut Shared) {
        let Answer { args, out } = answer;
        match (args[0].as_str(), &out) {
            ("RLOCK.ACQUIRE" | "RLOCK.MACQUIRE", Out::Int(_)) => {
                self.holds.extend(draw::asked(&args, None));
            }
            ("RLOCK.RELEASE", Out::Int(left)) => {
                let mode = draw::mode_of(&args);
                let left = match (mode.as_str(), *left) {
                    // Of permits it is how many of them, whoever asked for how many.
                    ("PERMITS", 1..) => usize::MAX,
                    _ => usize::try_from(*left).unwrap_or(0),
                };
                let mut seen = 0;
                self.holds.retain(|held| {
                    let same = held.key == args[1] && held.owner == args[2] && held.mode == mode;
                    seen += usize::from(same);
                    !same || seen <= left
                });
            }
            ("RLOCK.MRELEASE", Out::Int(_)) => {
                let (keys, owner) = draw::many(&args);
                for key in keys {
                    let mut all = self.holds.iter();
                    let at = all.position(|held| held.key == *key && held.owner == *owner);
                    at.map(|at| self.holds.swap_remove(at));
                }
            }
            ("RLOCK.RELEASE" | "RLOCK.RENEW", Out::Error(error))
                if error.starts_with("NOTHELD") =>
            {
                let mode = draw::mode_of(&args);
                self.holds.retain(|held| {
                    held.key != args[1] || held.owner != args[2] || held.mode != mode
                });
            }
            ("RLOCK.MRENEW", Out::Error(error)) if error.starts_with("NOTHELD") => {
                self.fate = Fate::Release;
            }
            (_, Out::Error(error)) => self.redirected(&args, &error.clone(), shared),
            _ => (),
        }
    }

    fn redirected(&mut self, args: &Args, error: &str, shared: &mut Shared) {
        let mut words = error.split(' ');
        let code = words.next().unwrap_or_default();
        let target = words
            .nth(1)
            .and_then(|at| at.rsplit(':').next()?.parse().ok());
        match (code, target) {
            ("MOVED", Some(target)) => {
                let key = draw::key_of(args).to_owned();
                shared.route(tag_of(&key), target);
                if self.rng.u32(0..3) > 0 {
                    self.again = Some((target, false, args.clone()));
                }
            }
            ("ASK", Some(target)) => self.again = Some((target, true, args.clone())),
            _ => (),
        }
    }
}
