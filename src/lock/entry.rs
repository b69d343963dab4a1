//! What the core remembers of a key: only what the keyspace cannot tell, and
//! only while it is of use.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::WaiterId;
use super::key::Bytes;
use super::keyspace::Lease;
use super::rank::Rank;
use super::watch::Watch;

/// What is known of one owner's holds. The keyspace says whether it still has
/// them; this adds what a hash cannot hold.
#[derive(Clone, Debug)]
pub struct Hold {
    pub owner: Bytes,
    /// The token of the hold under way; not known of a hold that was found.
    pub token: Option<i64>,
    /// When it was acquired, wall-clock us.
    pub since_us: Option<i64>,
    /// The connection that took its first hold; 0: none that is known.
    pub client: u64,
    /// Who took which of its holds, once there are several, or one belongs to a
    /// connection.
    pub watch: Option<Box<Watch>>,
}

impl Hold {
    /// A hold that somebody else took, or that was there before us.
    pub fn found(owner: Bytes) -> Self {
        Self {
            owner,
            token: None,
            since_us: None,
            client: 0,
            watch: None,
        }
    }
}

/// One owner that holds a read/write lock.
#[derive(Clone, Debug)]
pub struct Party {
    pub hold: Hold,
    /// The token that its first hold had: an upgrade begins a new one.
    pub first: Option<i64>,
    pub reads: bool,
    pub writes: bool,
    /// The lease of its read holds; `Gone` if it has none.
    pub lease: Lease,
    /// How many read holds it had when last seen: it has a lease key for each.
    pub holds: i64,
}

impl Party {
    fn fields(&self) -> usize {
        usize::from(self.reads).saturating_add(usize::from(self.writes))
    }
}

/// The known holders of a read/write lock.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    parties: BTreeMap<Bytes, Party>,
    /// When the leases of readers end, earliest first.
    ends: BTreeSet<(i64, Bytes)>,
    writer: Option<Bytes>,
    /// Readers whose lease has no end.
    endless: usize,
    /// Readers of whose lease there is no news.
    away: usize,
    /// The fields of the hash that the parties account for.
    fields: usize,
    /// When the hash itself ends.
    pub expires: Option<i64>,
}

impl Shared {
    pub fn party(&self, owner: &[u8]) -> Option<&Party> {
        self.parties.get(owner)
    }

    pub fn hold_mut(&mut self, owner: &[u8]) -> Option<&mut Hold> {
        self.parties.get_mut(owner).map(|party| &mut party.hold)
    }

    pub fn parties(&self) -> impl Iterator<Item = &Party> {
        self.parties.values()
    }

    pub fn writer(&self) -> Option<&Bytes> {
        self.writer.as_ref()
    }

    pub fn fields(&self) -> usize {
        self.fields
    }

    pub fn is_empty(&self) -> bool {
        self.parties.is_empty()
    }

    /// Puts a party in the place of what was known of its owner.
    pub fn put(&mut self, party: Party) {
        let owner = party.hold.owner.clone();
        self.remove(&owner);
        match party.lease {
            Lease::Until(at) => {
                self.ends.insert((at, owner.clone()));
            }
            Lease::Endless => self.endless = self.endless.saturating_add(1),
            Lease::Away => self.away = self.away.saturating_add(1),
            Lease::Gone => {}
        }
        if party.writes {
            self.writer = Some(owner.clone());
        }
        self.fields = self.fields.saturating_add(party.fields());
        self.parties.insert(owner, party);
    }

    pub fn remove(&mut self, owner: &[u8]) -> Option<Party> {
        let party = self.parties.remove(owner)?;
        match party.lease {
            Lease::Until(at) => {
                self.ends.remove(&(at, party.hold.owner.clone()));
            }
            Lease::Endless => self.endless = self.endless.saturating_sub(1),
            Lease::Away => self.away = self.away.saturating_sub(1),
            Lease::Gone => {}
        }
        if self.writer.as_deref() == Some(owner) {
            // Somebody's hand can have made two.
            let mut others = self.parties.values();
            let other = others.find(|party| party.writes);
            self.writer = other.map(|party| party.hold.owner.clone());
        }
        self.fields = self.fields.saturating_sub(party.fields());
        Some(party)
    }

    /// Changes what is known of an owner. It is given back if that leaves it
    /// without holds.
    pub fn change(&mut self, owner: &[u8], change: impl FnOnce(&mut Party)) -> Option<Party> {
        let mut party = self.remove(owner)?;
        change(&mut party);
        if party.reads || party.writes {
            self.put(party);
            return None;
        }
        Some(party)
    }

    /// One that is not this owner: the writer, or the reader that stays longest.
    pub fn other_than(&self, owner: &[u8]) -> Option<Bytes> {
        let writer = self.writer.iter();
        let longest = self.ends.iter().rev().map(|(_, reader)| reader).take(2);
        let rest = self.parties.keys().take(2);
        let mut all = writer.chain(longest).chain(rest);
        all.find(|other| ***other != *owner).cloned()
    }

    /// Of some reader it is not known whether it lives.
    pub fn is_half(&self) -> bool {
        self.away > 0
    }

    /// The latest end of a reader's lease; `None` where one has no end or none that is
    /// known, or where there is no reader.
    pub fn last_end(&self) -> Option<i64> {
        if self.endless > 0 || self.away > 0 {
            return None;
        }
        self.ends.last().map(|(at, _)| *at)
    }

    /// The earliest moment at which something here ends.
    pub fn first_end(&self) -> Option<i64> {
        let first = self.ends.first().map(|(at, _)| *at);
        [first, self.expires].into_iter().flatten().min()
    }

    /// The readers whose lease ended before this wall-clock ms.
    pub fn over(&self, now_ms: i64) -> Vec<Bytes> {
        self.ends
            .iter()
            .take_while(|(at, _)| *at < now_ms)
            .map(|(_, owner)| owner.clone())
            .collect()
    }
}

/// Those who wait for a key.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// In order.
    queue: Queue,
    /// Those of them whose owners wait in another place too.
    entangled: Queue,
}

pub type Queue = BTreeMap<Rank, WaiterId>;

static NOBODY: Queue = Queue::new();

/// One key: its holders as far as known, its deadline, its queue.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The holder of a plain lock.
    pub plain: Option<Hold>,
    /// The holders of a read/write lock. Both: somebody made a read/write lock of
    /// a plain one that is held.
    pub shared: Option<Box<Shared>>,
    /// The wall-clock ms under which the key stands in the index of leases.
    pub deadline: Option<i64>,
    /// The deadline is that of a key that is no lock.
    pub foreign: bool,
    /// How often it was handed on since it was last asked who waits by subscription.
    pub passes: u8,
    /// When it was made or last attended to, as sweeps count (`heard`).
    pub stamp: u32,
    /// Who waits, if anybody does.
    line: Option<Box<Line>>,
}

impl Entry {
    pub fn new(stamp: u32) -> Self {
        Self {
            stamp,
            ..Self::default()
        }
    }

    /// Who waits, in order.
    pub fn queue(&self) -> &Queue {
        self.line.as_ref().map_or(&NOBODY, |line| &line.queue)
    }

    /// Those of them whose owners wait in another place too.
    pub fn entangled(&self) -> &Queue {
        self.line.as_ref().map_or(&NOBODY, |line| &line.entangled)
    }

    pub fn enqueue(&mut self, rank: Rank, id: WaiterId) {
        let line = self.line.get_or_insert_default();
        line.queue.insert(rank, id);
    }

    pub fn dequeue(&mut self, rank: &Rank) {
        if let Some(line) = &mut self.line {
            line.queue.remove(rank);
            line.entangled.remove(rank);
            if line.queue.is_empty() {
                self.line = None;
            }
        }
    }

    /// Takes all away who wait.
    pub fn take_line(&mut self) -> Option<Box<Line>> {
        self.line.take()
    }

    pub fn put_line(&mut self, line: Option<Box<Line>>) {
        self.line = line;
    }

    /// Marks the place of one who waits in another too, or takes the mark away.
    pub fn entangle(&mut self, rank: &Rank, id: WaiterId, on: bool) {
        if let Some(line) = &mut self.line {
            if on {
                line.entangled.insert(rank.clone(), id);
            } else {
                line.entangled.remove(rank);
            }
        }
    }

    /// The plain hold of an owner.
    pub fn plain_of(&self, owner: &[u8]) -> Option<&Hold> {
        self.plain.as_ref().filter(|hold| &*hold.owner == owner)
    }

    /// What is known of an owner's holds.
    pub fn hold(&self, owner: &[u8]) -> Option<&Hold> {
        self.plain_of(owner).or_else(|| {
            let party = self.shared.as_ref()?.party(owner)?;
            Some(&party.hold)
        })
    }

    pub fn hold_mut(&mut self, owner: &[u8]) -> Option<&mut Hold> {
        if self.plain_of(owner).is_some() {
            return self.plain.as_mut();
        }
        self.shared.as_mut()?.hold_mut(owner)
    }

    /// Somebody is known to hold it.
    pub fn is_held(&self) -> bool {
        self.plain.is_some() || self.shared.is_some()
    }

    /// Nothing here is worth remembering.
    pub fn is_idle(&self) -> bool {
        !self.is_held() && self.deadline.is_none() && self.line.is_none()
    }
}
