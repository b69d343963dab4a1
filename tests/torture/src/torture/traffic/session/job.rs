//! One owner in a session: what it asked for, and what has become of that.

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::history::Out;

use super::line::Line;
use super::{held, Args, Held, LONG_MS, PATIENCE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing was asked yet, or it is to be asked again.
    New,
    /// Asked, or queued.
    Waits,
    Holds,
    Over,
}

pub struct Job {
    pub owner: String,
    pub keys: Vec<String>,
    /// Empty: plain.
    pub mode: String,
    /// The request, without QUEUE's words and those behind them.
    pub acquire: Args,
    pub once: bool,
    pub watched: bool,
    pub lease: u64,
    pub state: State,
    /// The connection that asked, and the name of the request there.
    pub line: u32,
    pub tag: String,
    /// What was sent last to ask for the lock.
    pub last: Args,
    pub token: i64,
    /// Of an earlier hold of the same owner.
    pub stale: i64,
    pub since: u64,
    pub due: u64,
    /// How often something was tried to give it back, and to give up.
    pub tries: u32,
    pub gave_up: bool,
    /// It is left to its lease.
    pub forgets: bool,
    /// It holds for so long before it does anything else, us.
    pub keeps: u64,
    /// One of very many: it waits for long.
    pub in_crowd: bool,
    /// How many requests are not answered.
    asked: u32,
    /// And of these, those for the lock.
    asking: u32,
    /// How often it was told that it waits.
    queued: u32,
    ended: bool,
}

impl Job {
    pub fn new(owner: String, keys: Vec<String>, mode: &str, acquire: Args, lease: u64) -> Self {
        Self {
            owner,
            keys,
            mode: mode.to_owned(),
            acquire,
            once: false,
            watched: false,
            lease,
            state: State::New,
            line: 0,
            tag: String::new(),
            last: Vec::new(),
            token: 0,
            stale: 0,
            since: 0,
            due: 0,
            tries: 0,
            gave_up: false,
            forgets: false,
            keeps: 0,
            in_crowd: false,
            asked: 0,
            asking: 0,
            queued: 0,
            ended: false,
        }
    }

    pub fn busy(&self) -> bool {
        self.asked > 0
    }

    /// A request of its goes out on this line; what asks for the lock, or names where to
    /// tell of it, gets the line's channel.
    pub fn sent(&mut self, args: &mut Args, line: &Line) {
        self.asked += 1;
        let named = args.iter().position(|word| word == "NOTIFY");
        let Some(at) = named else {
            return;
        };
        args[at + 1].clone_from(&line.channel);
        self.line = line.conn.id;
        self.tag.clone_from(&args[at + 2]);
        if args[0].ends_with("ACQUIRE") {
            self.asking += 1;
            self.last.clone_from(args);
            self.ended = false;
            if self.state != State::Holds {
                self.state = State::Waits;
                self.since = now_us();
            }
        }
    }

    pub fn answered(&mut self, args: &Args, out: &Out, rng: &mut Rng) {
        self.asked = self.asked.saturating_sub(1);
        if args[0].ends_with("ACQUIRE") {
            self.asking = self.asking.saturating_sub(1);
        }
        let code = super::out_code(out);
        match (args[0].as_str(), out) {
            ("RLOCK.ACQUIRE" | "RLOCK.MACQUIRE", Out::Int(token)) => self.granted(*token, rng),
            ("RLOCK.ACQUIRE" | "RLOCK.MACQUIRE", Out::Text(_)) => {
                self.queued += 1;
                // The word that came before it counts.
                if self.state == State::Holds && !self.ended {
                    self.state = State::Waits;
                    self.since = now_us();
                }
            }
            // Of one that was sent again the first may be still in the queue.
            ("RLOCK.ACQUIRE" | "RLOCK.MACQUIRE", _)
                if self.state == State::Waits && self.queued == 0 && self.asking == 0 =>
            {
                self.ended = true;
                self.state = State::Over;
            }
            ("RLOCK.RELEASE", Out::Int(left)) if !args.contains(&"IFTOKEN".to_owned()) => {
                // CANCEL came before it: it is given up for certain.
                let gone = self.state == State::Waits && self.gave_up && self.asking == 0;
                let all = *left == 0 && (self.state == State::Holds || gone);
                self.given_back(all, rng);
            }
            ("RLOCK.RELEASE", Out::Int(0)) => {
                let own = args.contains(&self.token.to_string());
                self.given_back(own, rng);
            }
            ("RLOCK.MRELEASE", Out::Int(_)) => self.given_back(true, rng),
            ("RLOCK.RELEASE" | "RLOCK.RENEW" | "RLOCK.MRELEASE", Out::Error(_))
                if code == "NOTHELD" =>
            {
                self.state = State::Over;
            }
            _ => (),
        }
    }

    fn granted(&mut self, token: i64, rng: &mut Rng) {
        self.ended = true;
        self.token = token;
        self.state = State::Holds;
        self.due = now_us() + rng.u64(0..60_000) + self.keeps;
    }

    /// Now and then it comes once more.
    fn given_back(&mut self, all: bool, rng: &mut Rng) {
        if !all {
            return;
        }
        self.state = State::Over;
        if self.token > 0 && self.stale == 0 && !self.gave_up && rng.u32(0..5) == 0 {
            self.state = State::New;
            self.queued = 0;
            self.stale = self.token;
            self.token = 0;
        }
    }

    /// A message about the request under way.
    pub fn told(&mut self, word: &str, rest: &str, rng: &mut Rng) {
        match word {
            "granted" => {
                let token = rest.split(' ').next().unwrap_or_default();
                self.granted(token.parse().unwrap_or(0), rng);
            }
            // Now and then it does something about it.
            "wanted" if self.state == State::Holds && rng.u32(0..4) == 0 => self.due = now_us(),
            "timeout" | "error" if self.state == State::Waits && self.asking == 0 => {
                self.ended = true;
                self.state = State::Over;
            }
            "lost" if rest != "rebound" => self.state = State::Over,
            _ => (),
        }
    }

    /// Its connection has gone.
    pub fn cut(&mut self, rng: &mut Rng) {
        self.asked = 0;
        self.asking = 0;
        self.state = match self.state {
            State::Waits if self.once && rng.u32(0..3) > 0 => State::New,
            State::Holds if !self.watched => State::Holds,
            State::New => State::New,
            _ => State::Over,
        };
    }

    /// Nobody will hear what it is told on this connection.
    pub fn unheard(&mut self, line: u32) {
        if self.line == line && self.state == State::Waits {
            self.state = if self.once { State::New } else { State::Over };
        }
    }

    pub fn patient(&self) -> bool {
        now_us() < self.since + PATIENCE
    }

    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// What it may hold still, for long.
    pub fn left_behind(self) -> Vec<Held> {
        let maybe = self.token > 0 || !self.ended;
        if !maybe || self.watched || self.lease <= LONG_MS {
            return Vec::new();
        }
        self.keys.iter().map(|key| held(key, &self)).collect()
    }
}
