//! What a request asks, by the grammar of the documentation.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    Plain,
    Read,
    Write,
}

impl Mode {
    /// Whether two owners may hold a lock in these modes at once.
    pub fn goes_with(self, other: Self) -> bool {
        self == Self::Read && other == Self::Read
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Acquire,
    Release,
    Renew,
    Macquire,
    Mrelease,
    Mrenew,
    Info,
    Echo,
    Other,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub verb: Verb,
    pub keys: Vec<String>,
    pub owner: String,
    pub lease_us: u64,
    pub mode: Mode,
    /// us; none: a try.
    pub block: Option<u64>,
    pub watchdog: bool,
}

impl Request {
    pub fn parse(args: &[String]) -> Self {
        let verb = match args[0].as_str() {
            "RLOCK.ACQUIRE" => Verb::Acquire,
            "RLOCK.RELEASE" => Verb::Release,
            "RLOCK.RENEW" => Verb::Renew,
            "RLOCK.MACQUIRE" => Verb::Macquire,
            "RLOCK.MRELEASE" => Verb::Mrelease,
            "RLOCK.MRENEW" => Verb::Mrenew,
            "RLOCK.INFO" => Verb::Info,
            "ECHO" => Verb::Echo,
            _ => Verb::Other,
        };
        let word = |at: usize| args.get(at).cloned().unwrap_or_default();
        let number = |at: usize| args.get(at).and_then(|word| word.parse::<u64>().ok());
        let count = match verb {
            Verb::Macquire | Verb::Mrelease | Verb::Mrenew => number(1).unwrap_or(0) as usize,
            Verb::Other | Verb::Echo => 0,
            _ => 1,
        };
        let first = 1 + usize::from(args[0].starts_with("RLOCK.M"));
        let keys = args.iter().skip(first).take(count).cloned().collect();
        let rest = first + count;
        let words = args.get(rest + 1..).unwrap_or_default();
        let has = |word: &str| words.iter().any(|one| one == word);
        let mode = match (has("READ"), has("WRITE")) {
            (true, _) => Mode::Read,
            (_, true) => Mode::Write,
            _ => Mode::Plain,
        };
        let at = words.iter().position(|word| word == "BLOCK");
        let block = at.and_then(|at| words.get(at + 1)?.parse::<u64>().ok());
        Self {
            verb,
            keys,
            owner: word(rest),
            lease_us: number(rest + 1).unwrap_or(0).saturating_mul(1000),
            mode,
            block: block.map(|ms| ms * 1000),
            watchdog: has("WATCHDOG"),
        }
    }

    /// It is no request that rlock knows, and must be refused.
    pub fn is_wrong(&self) -> bool {
        ["bad", "mode"].contains(&self.owner.as_str())
    }

    /// Asks for a hold.
    pub fn acquires(&self) -> bool {
        matches!(self.verb, Verb::Acquire | Verb::Macquire)
    }

    pub fn releases(&self) -> bool {
        matches!(self.verb, Verb::Release | Verb::Mrelease)
    }

    pub fn renews(&self) -> bool {
        matches!(self.verb, Verb::Renew | Verb::Mrenew)
    }
}
