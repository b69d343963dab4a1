//! What a request asks, by the grammar of the documentation.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    Plain,
    Read,
    Write,
    Permits,
}

impl Mode {
    /// Whether two owners may hold a lock in these modes at once; of permits it depends
    /// on how many.
    pub fn goes_with(self, other: Self) -> bool {
        self == other && matches!(self, Self::Read | Self::Permits)
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
    Cancel,
    Force,
    Limit,
    List,
    Echo,
    Wait,
    Heartbeat,
    Other,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub verb: Verb,
    pub keys: Vec<String>,
    pub owner: String,
    pub lease_us: u64,
    pub mode: Mode,
    /// How long it waits at most, blocked or queued, us; none: a try.
    pub block: Option<u64>,
    pub queues: bool,
    pub watchdog: bool,
    pub once: bool,
    /// Of permits: the limit that is said, or is to be; and how many of them.
    pub limit: Option<i64>,
    pub permits: i64,
    pub if_held: bool,
    pub if_token: Option<i64>,
    /// Channel and tag.
    pub notify: Option<(String, String)>,
    /// It wants to know that somebody waits.
    pub wanted: bool,
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
            "RLOCK.CANCEL" => Verb::Cancel,
            "RLOCK.FORCE" => Verb::Force,
            "RLOCK.LIMIT" => Verb::Limit,
            "RLOCK.LIST" => Verb::List,
            "ECHO" => Verb::Echo,
            "WAIT" => Verb::Wait,
            "RLOCK.HEARTBEAT" => Verb::Heartbeat,
            _ => Verb::Other,
        };
        let word = |at: usize| args.get(at).cloned().unwrap_or_default();
        let number = |at: usize| args.get(at).and_then(|word| word.parse::<u64>().ok());
        let count = match verb {
            Verb::Macquire | Verb::Mrelease | Verb::Mrenew => number(1).unwrap_or(0) as usize,
            Verb::Other | Verb::Echo | Verb::Wait | Verb::List | Verb::Heartbeat => 0,
            _ => 1,
        };
        let first = 1 + usize::from(args[0].starts_with("RLOCK.M"));
        let keys = args.iter().skip(first).take(count).cloned().collect();
        let rest = first + count;
        let words = args.get(rest + 1..).unwrap_or_default();
        let behind = |word: &str, nth: usize| {
            let at = words.iter().position(|one| one == word)?;
            words.get(at + nth)
        };
        let has = |word: &str| behind(word, 0).is_some();
        let value = |word| behind(word, 1).and_then(|text| text.parse::<i64>().ok());
        let mode = match (has("READ"), has("WRITE")) {
            _ if has("PERMITS") || value("LIMIT").is_some() => Mode::Permits,
            (true, _) => Mode::Read,
            (_, true) => Mode::Write,
            _ => Mode::Plain,
        };
        let queues = has("QUEUE");
        let block = value(if queues { "QUEUE" } else { "BLOCK" });
        let limit = match verb {
            Verb::Limit => number(2).map(|limit| limit as i64),
            _ => value("LIMIT"),
        };
        let notify = behind("NOTIFY", 1).zip(behind("NOTIFY", 2));
        Self {
            verb,
            keys,
            owner: word(rest),
            lease_us: number(rest + 1).unwrap_or(0).saturating_mul(1000),
            mode,
            block: block.map(|ms| ms.unsigned_abs() * 1000),
            queues,
            watchdog: has("WATCHDOG"),
            once: has("ONCE"),
            limit,
            permits: value("PERMITS").unwrap_or(1),
            if_held: has("IFHELD"),
            if_token: value("IFTOKEN"),
            notify: notify.map(|(channel, tag)| (channel.clone(), tag.clone())),
            wanted: has("WANTED"),
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
