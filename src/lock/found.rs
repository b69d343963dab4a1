//! What can be found of a lock in the keyspace, and by whom.

use super::types::{Owner, Token, WallMs};

/// How a lock is held, or is to be.
/// In this order holders are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A plain lock: one owner, a hash of one field.
    Exclusive,
    /// A write lock of a read/write lock.
    Write,
    /// A read lock of a read/write lock.
    Read,
    /// Some of the permits of a lock that several may hold.
    Permits,
}

impl Mode {
    /// Whoever excludes most first.
    pub const ALL: [Self; 4] = [Self::Exclusive, Self::Write, Self::Read, Self::Permits];

    /// One of the two of a read/write lock.
    pub fn is_read_write(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Several owners can have it so at once.
    pub fn is_for_several(self) -> bool {
        match self {
            Self::Read | Self::Permits => true,
            Self::Exclusive | Self::Write => false,
        }
    }

    /// A name that is held in the one mode cannot be held in the other by the same owner.
    pub fn mixes_with(self, other: Self) -> bool {
        self == other || self.is_read_write() && other.is_read_write()
    }
}

/// The permits of a lock, as its field `mode` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool {
    /// The limit that each request says.
    pub asked: i64,
    /// The limit in force: LIMIT changes it.
    pub limit: i64,
    /// No more than these are out. Owners count that have run out and were not found yet.
    pub out: i64,
}

impl Pool {
    /// The greatest limit.
    pub const MOST: i64 = 1_000_000;

    /// So many more are out, or fewer.
    pub fn plus(self, permits: i64) -> Self {
        let out = self.out.saturating_add(permits).max(0);
        Self { out, ..self }
    }

    /// Whether both limits are the same.
    pub fn is_as(self, other: Self) -> bool {
        (self.asked, self.limit) == (other.asked, other.limit)
    }

    /// So many can be had now.
    pub fn available(self) -> i64 {
        self.limit.saturating_sub(self.out).max(0)
    }
}

/// What a key is, as far as locks are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such key: the lock is free.
    Free,
    /// A plain lock, held.
    Plain,
    /// A read/write lock, with what its field `mode` says.
    ReadWrite(Mode),
    /// A lock with permits.
    Permits(Pool),
    /// A key that is no lock.
    Foreign(Foreign),
}

impl Kind {
    /// Somebody holds a lock there.
    pub fn is_lock(self) -> bool {
        self == Self::Plain || self.is_for_several()
    }

    /// Something else has the name.
    pub fn is_foreign(self) -> bool {
        matches!(self, Self::Foreign(_))
    }

    /// A lock that is known as `Shared`: several may hold it, or one may write.
    pub fn is_for_several(self) -> bool {
        match self {
            Self::ReadWrite(_) | Self::Permits(_) => true,
            Self::Free | Self::Plain | Self::Foreign(_) => false,
        }
    }

    /// Of these one with readers and a writer.
    pub fn is_read_write(self) -> bool {
        matches!(self, Self::ReadWrite(_))
    }
}

/// Why a key is no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It is no hash.
    OtherType,
    /// It is a hash, but not laid out as a lock.
    OtherHash,
    /// It is a hash that could be a lock, but has no TTL and is not known for one.
    NoTtl,
}

/// When an owner's own lease ends. Of a reader's lease keys the latest counts, but one that
/// may be elsewhere counts more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lease {
    /// None of its lease keys is there: it holds nothing.
    #[default]
    Gone,
    Until(WallMs),
    /// One of them has no TTL.
    Endless,
    /// One of them is not here and may be on another node: their slot migrates.
    Migrating,
}

impl Lease {
    /// That of what ends then, or has no TTL.
    pub fn of(expires: Option<WallMs>) -> Self {
        expires.map_or(Self::Endless, Self::Until)
    }

    /// There is no lease key here that would tell of a reader.
    pub fn is_missing(self) -> bool {
        matches!(self, Self::Gone | Self::Migrating)
    }

    /// When it ends, if that is known.
    pub fn end(self) -> Option<WallMs> {
        match self {
            Self::Until(at) => Some(at),
            Self::Gone | Self::Endless | Self::Migrating => None,
        }
    }
}

/// A key as one owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub kind: Kind,
    /// The fields that stand for holds: all but `mode`. Of a plain lock: 1.
    pub fields: usize,
    /// What the owner's field counts: its plain holds, its permits, or in a read/write
    /// lock its read holds, be their lease keys there or not. 0: no such field.
    pub holds: i64,
    /// The write holds of the owner that was asked for.
    pub writes: i64,
    /// The lease of the owner's permits, or of its read holds in a read/write lock.
    pub lease: Lease,
    /// When the key expires; `None`: it has no TTL.
    pub expires: Option<WallMs>,
    /// It was there until this very look, which found that it had run out.
    pub ran_out: bool,
    /// The plain lock is held by the one who was known to.
    pub as_known: bool,
}

impl Look {
    /// A key that does not exist.
    pub const FREE: Self = Self {
        kind: Kind::Free,
        fields: 0,
        holds: 0,
        writes: 0,
        lease: Lease::Gone,
        expires: None,
        ran_out: false,
        as_known: false,
    };

    /// The permits, if it is a lock with such.
    pub fn pool(&self) -> Option<Pool> {
        match self.kind {
            Kind::Permits(pool) => Some(pool),
            _ => None,
        }
    }

    /// Nobody holds it, and nothing else is there.
    pub fn is_free(&self) -> bool {
        self.kind == Kind::Free
    }
}

/// One owner's holds on a lock, as the keyspace has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub owner: Owner,
    pub mode: Mode,
    pub holds: i64,
    /// Of a reader, and of permits: its own lease. Else that of the key.
    pub lease: Lease,
}

/// What is known of a plain lock, for a look that need not find it out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint<'a> {
    /// Who holds it: if that one does still, no other field is looked at.
    pub holder: Option<&'a [u8]>,
    /// When it ends, where that does not matter: if the owner that looks holds it, it is not
    /// asked.
    pub end: Option<WallMs>,
}

/// The fencing counter of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// There is none.
    Absent,
    /// There can be none: in a cluster it would lie in another slot.
    Elsewhere,
    /// Its last token.
    At(Token),
    /// Something stands in its place that is no integer.
    Unusable,
}

/// An owner nests no more read holds than this: each has a lease key.
pub const MOST_READS: i64 = 1024;

/// At most so many of a reader's lease keys are looked at from either end: a count
/// of holds may be anything that somebody has written.
const FROM_EITHER_END: i64 = 32;

/// Which lease keys of a reader with so many holds are looked at to tell whether
/// it lives: all of them, but for a reader with very many.
pub fn leases_looked_at(holds: i64) -> impl Iterator<Item = i64> {
    let first = 1..=holds.min(FROM_EITHER_END);
    let last = holds.saturating_sub(FROM_EITHER_END).max(FROM_EITHER_END);
    first.chain(last.saturating_add(1)..=holds)
}

/// Where a lock's slot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slot {
    /// This node's: what is not here is nowhere.
    #[default]
    Ours,
    /// It migrates from or to this node: what is here of it is this node's to act on.
    Migrating,
    /// Another node's.
    Others,
}
