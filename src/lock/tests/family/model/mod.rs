//! What the whole family of locks is to do, put as plainly as possible, from the
//! specification alone: plain and read/write locks, many keys at once, watchdogs,
//! deadlocks.
//!
//! Slow, and without an index of anything. All holds are one list, all who wait
//! are another, and who waits for whom is found out anew each time. Nothing is
//! ever late here: what is due happens in the step in which it falls due.
//!
//! A lock is its holds. `keys` says what stands under a name and until when,
//! `leases` is a read lock's string keys, one for each read hold.

mod deadlock;
mod foreign;
mod kept;
mod permits;
mod renewals;
mod requests;
mod sessions;
mod silence;
mod time;
mod waiting;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};

pub use crate::lock::{Event, Reason};
pub use foreign::FOUND_LIMIT;
pub use kept::{Kept, Rank};
pub use permits::{Limit, Share};
pub use renewals::Renew;
pub use requests::{Aim, Ask, Only};

use crate::lock::{Now, Rules};
pub use sessions::{Address, Loss};
pub use silence::Hearing;
pub use wanted::Hint;

pub type Owner = &'static str;
/// A database and a name in it.
pub type Place = (i32, &'static str);
pub use crate::lock::ClientId as Client;
/// Tokens in the order in which they were made; the core's are other numbers.
pub type Token = u64;

/// A moment that does not come.
pub const NEVER: i64 = i64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    Plain,
    Read,
    Write,
    Permits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Plain,
    Shared,
    Permits,
    /// No lock at all.
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub kind: Kind,
    /// Wall-clock ms.
    pub ends: i64,
    /// Somebody gave it, or a lease key of it, another TTL by hand.
    pub by_hand: bool,
    /// A lock of this run: a command of rlock's has found it with a TTL, or made it.
    pub known: bool,
}

impl Slot {
    /// No lock, whatever it is.
    pub fn foreign(ends: i64) -> Self {
        Self {
            kind: Kind::Text,
            ends,
            by_hand: false,
            known: false,
        }
    }
}

/// The server renews the lease while the hold's connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    pub lease: i64,
    /// That of any watchdog hold of the owner there since: the longer lease stays.
    pub longest: i64,
    /// Since when, wall-clock ms: `watchdog-max` counts from there, the last
    /// acquisition with WATCHDOG or RENEW on that lock.
    pub since: i64,
    /// Until then a lease was asked for, by any of these or the last RENEW.
    pub asked: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    pub id: u64,
    pub place: Place,
    pub owner: Owner,
    pub mode: Mode,
    /// The connection that took it; nobody's if it was found.
    pub client: Option<Client>,
    pub watch: Option<Watch>,
    /// Where its loss is told, once no other of its owner's in the mode has the address,
    pub notify: Option<Address>,
    /// and also that somebody waits for it.
    pub wanted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    pub id: usize,
    pub ask: Ask,
    /// Monotonic us.
    pub until: Option<i64>,
    /// It has been put ahead of all others as an upgrade.
    pub upgrades: bool,
    /// `None`: in front of all that have one.
    pub rank: Option<Rank>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    NotHeld,
    WrongType,
    WrongMode,
    WrongLimit,
    /// The owner has another number of holds or permits than its request is for.
    Held,
    Deadlock,
    /// Its owner has asked for the same again.
    Superseded,
    /// Another wait or hold of the connection has its tag.
    TagInUse,
    /// The server is no master any more.
    SentAway,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This one, or one of these.
    Token(Vec<Token>),
    Null,
    Waits(usize),
    Count(i64),
    Done,
    Forced(bool),
    /// For one of these reasons: which goes first where two hold is left open.
    Refused(Vec<Why>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Granted(Vec<Token>),
    TimedOut,
    Refused(Why),
}

/// An event, and whether it has to be told: of what rlock never touched it may
/// know nothing.
pub type Told = (Place, Event, bool);

/// A grant whose reply may not have left the server, and the holds it made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    pub waiter: usize,
    pub client: Client,
    /// By a message, while the connection goes on.
    pub queue: bool,
    pub holds: Vec<u64>,
}

#[derive(Clone, Default)]
pub struct Model {
    pub wall_us: i64,
    pub mono_us: i64,
    pub detect_deadlocks: bool,
    /// Left open: whether a request that stands behind another one of the same owner
    /// waits for those between them. It need not, for both are granted together.
    pub between: bool,
    /// ms; 0: none.
    pub watchdog_max: i64,

    pub keys: BTreeMap<Place, Slot>,
    /// The lease keys of readers, by their number from 1; they may outlast the
    /// lock.
    pub leases: BTreeMap<(Place, Owner, usize), i64>,
    /// Names of lease keys under which somebody keeps something else.
    pub squats: BTreeSet<(Place, Owner, usize)>,
    /// The limits of locks that are held by permits,
    pub limits: BTreeMap<Place, Limit>,
    /// and when each owner's lease of them ends.
    pub permit_ends: BTreeMap<(Place, Owner), i64>,
    /// Oldest first.
    pub holds: Vec<Hold>,
    /// The token of each owner's hold under way, where rlock knows.
    pub tokens: BTreeMap<(Place, Owner), Token>,
    /// What each owner was given for its holds in a mode, since the first of them.
    pub given: BTreeMap<(Place, Owner, Mode), Vec<Token>>,
    /// Hashes without a TTL that rlock does not know for locks: what they are once they
    /// have one. Until then they are no locks.
    pub aside: BTreeMap<Place, (Kind, Vec<Hold>)>,
    /// Over all keys, in the order in which they are served.
    pub queue: Vec<Waiter>,
    pub grants: Vec<Grant>,
    /// ms; `None`: no place is kept.
    pub keep_place: Option<i64>,
    pub kept: Vec<Kept>,

    pub answers: Vec<(usize, Answer)>,
    pub events: Vec<Told>,
    /// Places that somebody left by a script, how often: rlock may find out when the
    /// lease would have ended, and take it for that.
    pub left: BTreeMap<Place, usize>,
    /// Connections that lost a watchdog hold, and are to be closed.
    pub lost: BTreeSet<Client>,
    /// What connections are told of holds that they had.
    pub losses: Vec<Loss>,
    /// Connections that hear nothing.
    pub deaf: BTreeSet<Client>,
    pub hearing: Hearing,
    /// Who is to know that somebody waits, and what is known of that.
    pub hinted: BTreeMap<(Place, Owner), Hint>,
    /// Where that was told.
    pub hints: BTreeSet<Address>,
    /// Owners that came to hold something in this step, or lost a hold or a request: their
    /// other requests are looked at again.
    judged: BTreeSet<Owner>,
    pub arrivals: usize,
    pub made_tokens: Token,
    made_holds: u64,
}

impl Model {
    pub fn new(now: Now, rules: Rules) -> Self {
        Self {
            wall_us: now.wall.0,
            mono_us: now.mono.0,
            detect_deadlocks: rules.detect_deadlocks,
            watchdog_max: rules.watchdog_max.unwrap_or(0),
            keep_place: rules.keep_place,
            ..Self::default()
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.wall_us.div_euclid(1000)
    }

    /// How often the owner holds the key in this mode.
    pub fn count(&self, place: Place, owner: Owner, mode: Mode) -> usize {
        let same = |hold: &&Hold| (hold.place, hold.owner, hold.mode) == (place, owner, mode);
        self.holds.iter().filter(same).count()
    }

    pub fn holds_any(&self, place: Place, owner: Owner) -> bool {
        self.holds_at(place).any(|hold| hold.owner == owner)
    }

    pub fn holds_at(&self, place: Place) -> impl Iterator<Item = &Hold> {
        self.holds.iter().filter(move |hold| hold.place == place)
    }

    pub fn owners_at(&self, place: Place) -> BTreeSet<Owner> {
        self.holds_at(place).map(|hold| hold.owner).collect()
    }

    pub fn kind(&self, place: Place) -> Option<Kind> {
        self.keys.get(&place).map(|slot| slot.kind)
    }

    /// When the owner's lease on the key ends. It has one, whatever its modes.
    pub fn ends(&self, place: Place, owner: Owner) -> i64 {
        if let Some(ends) = self.permit_ends.get(&(place, owner)) {
            return *ends;
        }
        let reads = self.count(place, owner, Mode::Read);
        let all = self.holds_at(place).filter(|hold| hold.owner == owner);
        if all.count() > reads {
            return self.keys[&place].ends;
        }
        self.reads_end(place, owner).unwrap_or(0)
    }

    /// When the last lease key of its read holds ends, if it has any.
    pub fn reads_end(&self, place: Place, owner: Owner) -> Option<i64> {
        let reads = self.count(place, owner, Mode::Read);
        let leases = (1..=reads).filter_map(|i| self.leases.get(&(place, owner, i)));
        leases.copied().max()
    }

    /// Ends some of the holds, by their numbers. A lock without holds is free.
    fn end(&mut self, ids: &[u64]) {
        for id in ids {
            let at = self.holds.iter().position(|hold| hold.id == *id).unwrap();
            let hold = self.holds.remove(at);
            let left = self.count(hold.place, hold.owner, Mode::Read);
            if hold.mode == Mode::Read {
                self.leases.remove(&(hold.place, hold.owner, left + 1));
            }
            self.parted(&hold);
            self.tidy(hold.place);
        }
    }

    /// Its owner's requests for the key wait for those ahead of them from now on.
    fn parted(&mut self, hold: &Hold) {
        let waits = |w: &Waiter| w.ask.owner == hold.owner && w.ask.keys.contains(&hold.place);
        if self.queue.iter().any(waits) {
            self.judged.insert(hold.owner);
        }
    }

    /// Ends holds in another way than by their owner's release: whoever they are bound to
    /// is to know.
    fn lose(&mut self, reason: Reason, which: impl Fn(&Hold) -> bool) {
        let gone: Vec<Hold> = self.holds.iter().copied().filter(|h| which(h)).collect();
        self.holds.retain(|hold| !which(hold));
        self.tell_losses(&gone, &[reason]);
        for hold in gone {
            self.parted(&hold);
            self.tidy(hold.place);
        }
    }

    fn tidy(&mut self, place: Place) {
        let is_lock = self.kind(place).is_some_and(|kind| kind != Kind::Text);
        if is_lock && self.holds_at(place).next().is_none() {
            self.keys.remove(&place);
            self.limits.remove(&place);
        }
        let holds = &self.holds;
        self.tokens
            .retain(|(at, owner), _| holds.iter().any(|h| (h.place, h.owner) == (*at, *owner)));
        let has = |which| holds.iter().any(|h| (h.place, h.owner, h.mode) == which);
        self.given.retain(|which, _| has(*which));
        self.permit_ends
            .retain(|(place, owner), _| has((*place, *owner, Mode::Permits)));
    }

    /// Rlock looks at these keys: those that are locks it knows from then on.
    fn know<'a>(&mut self, places: impl IntoIterator<Item = &'a Place>) {
        for place in places {
            if let Some(slot) = self.keys.get_mut(place) {
                slot.known |= slot.kind != Kind::Text;
            }
        }
    }

    pub fn tell(&mut self, place: Place, event: Event, sure: bool) {
        self.events.push((place, event, sure));
    }

    fn next_token(&mut self) -> Token {
        self.made_tokens += 1;
        self.made_tokens
    }

    fn next_hold(&mut self) -> u64 {
        self.made_holds += 1;
        self.made_holds
    }
}
