//! What is remembered of a key: only what the keyspace cannot tell, and only while it
//! is of use. It is changed by [`Locks`] alone.
//!
//! [`Locks`]: super::Locks

use super::hold::Hold;
use super::shared::Shared;
use crate::lock::{Hint, Mode, Token, WakeTarget, WallMs};

/// One key: its holders as far as known, its deadline, its queue.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The holder of a plain lock.
    pub(super) plain: Option<Hold>,
    /// The holders of a lock that several may hold. Both: somebody made a read/write lock of
    /// a plain one that is held.
    pub(super) shared: Option<Box<Shared>>,
    /// When something here ends: the moment under which the key stands in the index of
    /// leases.
    pub deadline: Option<WallMs>,
    /// The deadline is that of a key that is no lock.
    pub foreign: bool,
    /// Nothing is known of it but that it could be a lock (`presumption`), which ends
    /// then: no request has come to it. Whom that wakes.
    pub(super) presumed: Option<WakeTarget>,
    /// How often it was handed on since it was last asked who waits by subscription.
    pub(super) passes: u8,
    /// When it was made or last attended to, as sweeps count (`heard`).
    pub stamp: u32,
    /// Somebody waits for it.
    pub waited_for: bool,
}

/// What is known of a lock's holders, and when it ends.
#[derive(Debug, Default)]
pub struct Holders {
    pub plain: Option<Hold>,
    pub shared: Option<Box<Shared>>,
    pub deadline: Option<WallMs>,
    pub presumed: Option<WakeTarget>,
}

impl Entry {
    /// Of a key of which nothing is known yet.
    pub(super) fn new(stamp: u32) -> Self {
        Self {
            stamp,
            ..Self::default()
        }
    }

    /// The holder of a plain lock.
    pub fn plain(&self) -> Option<&Hold> {
        self.plain.as_ref()
    }

    /// The holders of a lock that several may hold.
    pub fn shared(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    /// Whether it has so many holders that nothing is done for all of them at once.
    pub fn are_many(&self) -> bool {
        self.shared().is_some_and(Shared::are_many)
    }

    /// All that are known to hold it.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        let holds = self.shared.iter().flat_map(|shared| shared.holds());
        self.plain.iter().chain(holds)
    }

    /// Those of them behind this owner, in the order of their names; each owner once.
    pub fn holds_behind<'a>(&'a self, owner: Option<&'a [u8]>) -> impl Iterator<Item = &'a Hold> {
        let is_behind = move |hold: &&Hold| owner.is_none_or(|owner| &*hold.owner > owner);
        let mut plain = self.plain.as_ref().filter(is_behind);
        let shared = self.shared.iter();
        let mut others = shared
            .flat_map(move |shared| shared.holds_behind(owner))
            .peekable();
        std::iter::from_fn(move || {
            let is_first = |plain: &Hold, other: &&Hold| plain.owner <= other.owner;
            let other = others.peek();
            if plain.is_none_or(|plain| other.is_some_and(|other| !is_first(plain, other))) {
                return others.next();
            }
            // Somebody made a read/write lock of its plain one, and it reads.
            others.next_if(|other| plain.is_some_and(|plain| plain.owner == other.owner));
            plain.take()
        })
    }

    /// What a look at it need not find out. `releases`: an owner that does not mind when its
    /// own hold ends.
    pub fn beside(&self, releases: Option<&[u8]>) -> Hint<'_> {
        let holder = self.plain.as_ref().map(|hold| &hold.owner[..]);
        let is_its = releases.is_some() && holder == releases;
        let end = self.deadline.filter(|_| is_its);
        Hint { holder, end }
    }

    /// How many fields of the hash the known holders account for.
    pub fn fields(&self) -> usize {
        let shared = self.shared.as_ref().map_or(0, |shared| shared.fields());
        shared.saturating_add(usize::from(self.plain.is_some()))
    }

    /// The plain hold of an owner.
    pub fn plain_of(&self, owner: &[u8]) -> Option<&Hold> {
        self.plain.as_ref().filter(|hold| &*hold.owner == owner)
    }

    /// If nothing is known of it but that this owner holds it until a known moment, and perhaps
    /// that it is waited for: the token, as far as known, and the moment.
    pub(super) fn only_held_by(&self, owner: &[u8]) -> Option<(Option<Token>, WallMs)> {
        let else_known = self.shared.is_some() || self.is_presumed() || self.foreign;
        let hold = self.plain_of(owner).filter(|_| !else_known)?;
        Some((hold.token(), self.deadline?))
    }

    /// What is known of an owner's holds.
    pub fn hold(&self, owner: &[u8]) -> Option<&Hold> {
        self.plain_of(owner).or_else(|| {
            let shared = self.shared.as_ref()?;
            shared.hold(owner)
        })
    }

    /// The first and the newest token that an owner's holds in this mode were given, as far
    /// as known. Whatever it was given between the two was for them.
    pub fn tokens(&self, owner: &[u8], mode: Mode) -> Option<(Token, Token)> {
        let hold = match mode {
            Mode::Exclusive => self.plain_of(owner),
            Mode::Read | Mode::Write | Mode::Permits => self.shared()?.hold(owner),
        };
        hold?.tokens(mode)
    }

    /// Changes what is known of an owner's holds. None of them ends by that.
    pub(super) fn change_hold<T>(
        &mut self,
        owner: &[u8],
        change: impl FnOnce(&mut Hold) -> T,
    ) -> Option<T> {
        if self.plain_of(owner).is_some() {
            return self.plain.as_mut().map(change);
        }
        self.shared.as_mut()?.change_hold(owner, change)
    }

    /// Somebody is known to hold it.
    pub fn is_held(&self) -> bool {
        self.plain.is_some() || self.shared.is_some()
    }

    /// What others do to it is to be heard. Of a plain lock that is only held, until a moment
    /// that is known, it is not: whoever comes to it looks, and so does the timer then.
    pub fn is_heard(&self) -> bool {
        let plain = || {
            let hold = self.plain.as_ref()?;
            Some(self.deadline.is_none() || hold.is_bound())
        };
        self.waited_for || self.shared.is_some() || self.presumed.is_some() || plain() == Some(true)
    }

    /// It could be a lock, and no request has come to it.
    pub fn is_presumed(&self) -> bool {
        self.presumed.is_some()
    }

    /// Whom its end wakes, if it is presumed.
    pub fn presumed(&self) -> Option<WakeTarget> {
        self.presumed
    }

    /// Nothing here is worth remembering.
    pub fn is_idle(&self) -> bool {
        !self.is_held() && self.deadline.is_none() && !self.waited_for
    }
}
