//! What one owner has of one lock, as its client saw it, step by step.

use std::time::SystemTime;

/// Microseconds since 1970, as servers on this machine count them.
pub fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_micros() as u64)
}

/// How far apart the server's look at the clock and a client's can be: it looks once for
/// each turn of its loop, which a busy machine makes long.
pub const SLACK: u64 = 1_500_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Plain,
    Read,
    Write,
    Permits,
}

impl Mode {
    /// The word for RELEASE and RENEW.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Read => " READ",
            Self::Write => " WRITE",
            Self::Permits => " PERMITS",
        }
    }

    /// What RLOCK.INFO calls it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Plain => "exclusive",
            Self::Read => "read",
            Self::Write => "write",
            Self::Permits => "permits",
        }
    }
}

/// After a step: so many holds (or permits), and in which time the lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub holds: i64,
    pub ends: (u64, u64),
}

pub const FREE: State = State {
    holds: 0,
    ends: (0, 0),
};

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub sent: u64,
    /// Acknowledged: its reply or message was read.
    pub replied: Option<u64>,
    pub after: State,
    pub token: Option<i64>,
    /// Sets the lease; its end is known from the reply on.
    pub lease: Option<u64>,
}

#[derive(Debug)]
pub struct Item {
    pub db: u8,
    pub key: String,
    pub owner: String,
    pub mode: Mode,
    /// Renewed by the server.
    pub watched: bool,
    pub steps: Vec<Step>,
}

impl Item {
    pub fn new(db: u8, key: &str, owner: &str, mode: Mode) -> Self {
        Self {
            db,
            key: key.to_owned(),
            owner: owner.to_owned(),
            mode,
            watched: false,
            steps: Vec::new(),
        }
    }

    pub fn now(&self) -> State {
        self.steps.last().map_or(FREE, |step| step.after)
    }

    /// The lease for the next step, ms: longer each time by more than any delay, so that
    /// the end of the lease tells which step was the last.
    pub fn next_lease(&self) -> u64 {
        300_000 + 10_000 * self.steps.len() as u64
    }

    /// Is asked for; so many holds after it, and this lease if it sets one.
    pub fn ask(&mut self, holds: i64, lease: Option<u64>) {
        let sent = wall_us();
        let ends = match lease {
            Some(lease) => (sent + lease * 1000, u64::MAX),
            None => self.now().ends,
        };
        self.steps.push(Step {
            sent,
            replied: None,
            after: State { holds, ends },
            token: None,
            lease,
        });
    }

    pub fn done(&mut self, token: Option<i64>) {
        let (at, watched) = (wall_us(), self.watched);
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        step.replied = Some(at);
        step.token = token;
        if let (Some(lease), false) = (step.lease, watched) {
            step.after.ends.1 = at + lease * 1000;
        }
    }

    /// It was refused: nothing has changed.
    pub fn refused(&mut self) {
        self.steps.pop();
    }

    /// The number of the last step that was acknowledged; 0: none was.
    pub fn acked(&self) -> usize {
        let last = self.steps.iter().rposition(|step| step.replied.is_some());
        last.map_or(0, |at| at + 1)
    }

    pub fn state(&self, number: usize) -> State {
        match number {
            0 => FREE,
            _ => self.steps[number - 1].after,
        }
    }

    /// Whether after this step it can look so at that time.
    pub fn can_be(&self, number: usize, found: Option<State>, at: u64) -> bool {
        let state = self.state(number);
        match found {
            None => state.holds == 0 || state.ends.0 <= at + SLACK,
            Some(State { holds, ends }) => {
                let (from, to) = state.ends;
                let meet = from <= ends.1.saturating_add(SLACK);
                holds == state.holds && meet && ends.0 <= to.saturating_add(SLACK)
            }
        }
    }
}
