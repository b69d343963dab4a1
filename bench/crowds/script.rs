//! What is done to a server, as data: requests as they are typed, with a few words that stand
//! for something.
//!
//! | word | stands for |
//! |---|---|
//! | `#` | the number of this one of the crowd |
//! | `~` | the same, counted from the middle |
//! | `LONG` | ms that nothing here outlasts |
//! | `LATE` | ms until the moment at which all of the crowd end |
//! | `CHANNEL` | the channel of the session that asks |
//! | `KEYS` | how many locks the crowd has, and their names |
//!
//! One that begins with `!` must be refused with WRONGTYPE, one with `?` may be.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::scene::Scene;
use crate::load::{command, Connection, Outcome, Session};
use crate::stalls::until_blocked;

/// Long enough for everything here, ms.
const LONG: &str = "100000000";

/// Requests of a kind, where one piece is a request.
pub const TIMES: usize = 20;

/// Commands that go out together: to make a crowd, and while somebody else asks too.
const MAKING: usize = 250;
const IN_TURN: usize = 25;

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A client that listens to nothing.
    Client,
    /// The session of the crowd.
    Session,
    /// A session that comes later.
    Another,
}

pub enum Step {
    /// A request for each of the crowd.
    Each(By, &'static str),
    /// As many as there are requests of a kind.
    Some(By, &'static str),
    One(By, &'static str),
    /// A client for each of the crowd, which blocks.
    Blocks(&'static str),
    Do(fn(&mut Scene) -> Outcome<()>),
}

/// What happens to a crowd.
#[derive(Clone, Copy)]
pub enum Happen {
    /// These requests, twenty times, each when the one before is answered: the rest of the
    /// crowd stays as it was. A piece is a request.
    Requests {
        before: &'static [Step],
        by: By,
        asks: &'static [&'static str],
    },
    /// A request for each of the crowd, until these lines of INFO say 0 and the server rests. A
    /// piece is a request.
    InTurn {
        by: By,
        ask: &'static str,
        until: &'static [&'static str],
    },
    /// All of the crowd at once, until these lines of INFO say 0 and the server rests. A piece is
    /// one of the crowd.
    AtOnce {
        steps: &'static [Step],
        until: &'static [&'static str],
    },
}

impl Happen {
    /// Whether the crowd is there afterwards.
    pub fn spares(&self) -> bool {
        matches!(self, Happen::Requests { .. })
    }

    fn needs_another(&self) -> bool {
        match self {
            Happen::Requests { by, .. } | Happen::InTurn { by, .. } => *by == By::Another,
            Happen::AtOnce { steps, .. } => steps
                .iter()
                .any(|step| matches!(step, Step::One(By::Another, _))),
        }
    }
}

impl Scene {
    /// What comes before it happens, and does not count, nor does what is left of what
    /// happened before.
    pub fn prepare(&mut self, happen: &Happen) -> Outcome<()> {
        if let Happen::Requests { before, .. } = happen {
            self.run(before)?;
        }
        if happen.needs_another() {
            self.open_session()?;
        }
        self.rest()
    }

    /// It happens; gives how many pieces that is. No more than so many are asked in turn.
    pub fn let_happen(&mut self, happen: &Happen, in_turn: usize) -> Outcome<usize> {
        match *happen {
            Happen::Requests { by, asks, .. } => {
                for number in 0..TIMES {
                    for ask in asks {
                        self.send(by, ask, number..number + 1, 1)?;
                    }
                }
                Ok(TIMES * asks.len())
            }
            Happen::InTurn { by, ask, until } => {
                let count = self.n.min(in_turn);
                self.send(by, ask, 0..count, IN_TURN)?;
                if count == self.n {
                    self.until_none(until)?;
                }
                Ok(count)
            }
            Happen::AtOnce { steps, until } => {
                self.run(steps)?;
                self.until_none(until)?;
                Ok(self.n)
            }
        }
    }

    pub fn run(&mut self, steps: &[Step]) -> Outcome<()> {
        for step in steps {
            match *step {
                Step::Each(by, ask) => self.send(by, ask, 0..self.n, MAKING)?,
                Step::Some(by, ask) => self.send(by, ask, 0..TIMES, MAKING)?,
                Step::One(by, ask) => self.send(by, ask, 0..1, 1)?,
                Step::Blocks(ask) => self.block(ask)?,
                Step::Do(what) => what(self)?,
            }
        }
        Ok(())
    }

    fn block(&mut self, ask: &str) -> Outcome<()> {
        for number in 0..self.n {
            let mut client = self.server.connect_small()?;
            client.send(&self.words(ask, "").build(number))?;
            self.blocked.push(client);
        }
        until_blocked(&mut self.control, self.n)
    }

    fn open_session(&mut self) -> Outcome<()> {
        let connection = self.server.connect()?;
        self.sessions.push(match self.other.is_some() {
            true => Session::in_cluster(connection)?,
            false => Session::on(connection)?,
        });
        Ok(())
    }

    /// The request with each of these numbers, so many at a time.
    fn send(&mut self, by: By, ask: &str, numbers: Range<usize>, group: usize) -> Outcome<()> {
        if by == By::Session && self.sessions.is_empty() {
            self.open_session()?;
        }
        let session = match by {
            By::Client => None,
            By::Session => self.sessions.first(),
            By::Another => self.sessions.last(),
        };
        let channel = session.map_or(String::new(), |session| session.channel().to_owned());
        let words = self.words(ask, &channel);
        let expect = Expected::of(ask);
        let connection = match by {
            By::Client => Some(&mut self.control),
            By::Session => self
                .sessions
                .first_mut()
                .map(|session| &mut session.connection),
            By::Another => self
                .sessions
                .last_mut()
                .map(|session| &mut session.connection),
        };
        let connection = connection.ok_or("there is no session")?;
        for start in numbers.clone().step_by(group) {
            let end = numbers.end.min(start + group);
            let commands: Vec<Vec<u8>> = (start..end).map(|number| words.build(number)).collect();
            exchange(connection, &commands, expect)?;
        }
        Ok(())
    }

    fn words(&self, ask: &str, channel: &str) -> Words {
        let mut words = Vec::new();
        for word in ask.trim_start_matches(['!', '?']).split(' ') {
            match word {
                "LONG" => words.push(LONG.to_owned()),
                "CHANNEL" => words.push(channel.to_owned()),
                "KEYS" => {
                    words.push(self.n.to_string());
                    words.extend((0..self.n).map(|number| format!("{{lock}}:{number}")));
                }
                word => words.push(word.to_owned()),
            }
        }
        Words {
            words,
            middle: self.n / 2,
            ends: self.ends,
        }
    }
}

/// A request of which only the number is open.
struct Words {
    words: Vec<String>,
    middle: usize,
    ends: Instant,
}

impl Words {
    fn build(&self, number: usize) -> Vec<u8> {
        let full = self.words.iter().map(|word| match word.as_str() {
            "LATE" => {
                let left = self.ends.saturating_duration_since(Instant::now());
                left.max(Duration::from_millis(1)).as_millis().to_string()
            }
            word if word.contains('#') => word.replace('#', &number.to_string()),
            word if word.contains('~') => word.replace('~', &(self.middle + number).to_string()),
            word => word.to_owned(),
        });
        let full: Vec<String> = full.collect();
        let full: Vec<&str> = full.iter().map(String::as_str).collect();
        command(&full)
    }
}

/// What the reply may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    NoError,
    WrongType,
    Any,
}

impl Expected {
    fn of(ask: &str) -> Self {
        match ask.chars().next() {
            Some('!') => Expected::WrongType,
            Some('?') => Expected::Any,
            _ => Expected::NoError,
        }
    }
}

/// Sends commands, and reads as many replies.
fn exchange(connection: &mut Connection, commands: &[Vec<u8>], expect: Expected) -> Outcome<()> {
    connection.send(&commands.concat())?;
    let mut left = commands.len();
    while left > 0 {
        match (connection.reply(), expect) {
            // A message.
            (Ok([b'>', ..]), _) => continue,
            (Ok(reply), Expected::WrongType) => {
                return Err(format!("not refused: {:?}", String::from_utf8_lossy(reply)).into());
            }
            (Ok(_), _) => {}
            (Err(error), Expected::NoError) => return Err(error),
            (Err(error), _) => {
                let refusal = connection.refusal().ok_or_else(|| error.to_string())?;
                if expect == Expected::WrongType && !refusal.starts_with(b"-WRONGTYPE") {
                    return Err(error);
                }
            }
        }
        left -= 1;
    }
    Ok(())
}
