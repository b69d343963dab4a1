//! Clients that take locks in every way, and write down what was acknowledged.

mod block;
mod direct;
mod heir;
mod queue;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use crate::clock::{now_us, pause};
use crate::conn::{Conn, Gone};
use crate::item::{Item, Mode};
use crate::resp::Value;

/// What all clients of a load share.
pub struct Load {
    /// Of the server that is asked.
    pub port: AtomicU16,
    pub over: AtomicBool,
    pub seed: u64,
    /// In front of all names.
    pub name: String,
    /// Servers come and go, and others change the keys: clients come back, and what they
    /// are told is not looked at.
    pub loose: bool,
    /// Every lock has a fencing counter.
    pub counter: bool,
}

#[derive(Default)]
pub struct Journal {
    pub items: Vec<Item>,
    /// Replies that should not have come.
    pub strange: Vec<String>,
    pub requests: u64,
    /// Grants to blocked waiters, and by messages.
    pub waited: u64,
    /// By database and lock: what its fencing counter was said to be, at least.
    pub counters: BTreeMap<(u8, String), i64>,
}

impl Journal {
    pub fn add(&mut self, other: Self) {
        self.items.extend(other.items);
        self.strange.extend(other.strange);
        self.requests += other.requests;
        self.waited += other.waited;
        for (lock, token) in other.counters {
            self.count(lock, token);
        }
    }

    fn count(&mut self, lock: (u8, String), token: i64) {
        let most = self.counters.entry(lock).or_insert(token);
        *most = token.max(*most);
    }
}

/// Keys that all contend for: two plain ones, one of each other kind.
const SHARED: [(&str, Mode); 4] = [
    ("c0", Mode::Plain),
    ("c1", Mode::Plain),
    ("c2", Mode::Read),
    ("c3", Mode::Permits),
];

pub fn shared_keys(name: &str) -> Vec<String> {
    let all = SHARED.iter().map(|(key, _)| format!("{name}{key}"));
    all.collect()
}

#[derive(Clone, Copy)]
enum Kind {
    Direct,
    Block,
    Queue,
}

impl Load {
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Vec<ScopedJoinHandle<'scope, Journal>> {
        let kinds = [Kind::Direct; 3].into_iter();
        let kinds = kinds.chain([Kind::Block; 10]).chain([Kind::Queue; 2]);
        let start = |(number, kind)| scope.spawn(move || self.client(number, kind));
        kinds.enumerate().map(start).collect()
    }

    fn client(&self, number: usize, kind: Kind) -> Journal {
        let mut journal = Journal::default();
        let mut life = 0;
        while !self.is_over() {
            let rng = fastrand::Rng::with_seed(self.seed ^ (life << 32) ^ (number as u64) << 8);
            let who = format!("{}{number}.{life}", self.name);
            if let Ok(conn) = Conn::open(self.port.load(Ordering::SeqCst)) {
                let mut client = Client {
                    load: self,
                    conn,
                    rng,
                    who,
                    number,
                    serial: 0,
                    beside: None,
                    kept: VecDeque::new(),
                    journal: Journal::default(),
                };
                let _ = match kind {
                    Kind::Direct => client.direct(),
                    Kind::Block => client.block(),
                    Kind::Queue => client.queue(),
                };
                journal.add(client.journal);
            }
            if !self.loose {
                break;
            }
            life += 1;
            pause(20);
        }
        journal
    }
}

struct Client<'a> {
    load: &'a Load,
    conn: Conn,
    rng: fastrand::Rng,
    who: String,
    number: usize,
    serial: u64,
    /// For what is said while the other one waits.
    beside: Option<Conn>,
    kept: VecDeque<usize>,
    journal: Journal,
}

impl Client<'_> {
    fn owner(&mut self) -> String {
        self.serial += 1;
        format!("{}-{}", self.who, self.serial)
    }

    /// The next reply or push; `Silent` when all is over.
    fn next(&mut self) -> Result<Value, Gone> {
        loop {
            match self.conn.next(now_us() + 100_000) {
                Err(Gone::Silent) if !self.load.is_over() => {}
                other => return other,
            }
        }
    }

    fn item(&mut self, item: Item) -> usize {
        self.journal.items.push(item);
        self.journal.items.len() - 1
    }

    fn at(&mut self, index: usize) -> &mut Item {
        &mut self.journal.items[index]
    }

    /// What was asked of these items is done, perhaps with a token.
    fn done(&mut self, items: &[usize], token: Option<i64>, fenced: bool) {
        for at in items {
            let item = self.at(*at);
            item.done(token);
            let lock = (item.db, item.key.clone());
            if let (Some(token), true) = (token, fenced || self.load.counter) {
                self.journal.count(lock, token);
            }
        }
    }

    /// Notes a reply that should not have come; in vain if servers come and go.
    fn strange(&mut self, line: &str, reply: &Value) -> Gone {
        if !self.load.loose {
            self.journal.strange.push(format!("{line}: {reply:?}"));
        }
        Gone::Closed
    }

    /// What to ask for of a shared key: the key, its mode, and the words behind the lease.
    fn shared(&mut self) -> (String, Mode, &'static str) {
        let (key, mode) = SHARED[self.rng.usize(..SHARED.len())];
        let key = format!("{}{key}", self.load.name);
        match mode {
            Mode::Read if self.rng.u8(..3) == 0 => (key, Mode::Write, " WRITE"),
            Mode::Read => (key, Mode::Read, " READ"),
            Mode::Permits => (key, mode, " LIMIT 3"),
            _ => (key, mode, ""),
        }
    }
}
