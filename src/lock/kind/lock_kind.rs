//! What a kind of lock does. Each kind has one value of [`LockKind`], in a folder of its own, which
//! the rest of the core asks in place of asking which kind it is. What is left of that is where a
//! kind is known from memory (`SharedKind`) or by what a request wants (`Mode`), and is named.

use crate::lock::ask::{Once, Share, Want};
use crate::lock::grant::{one_more, GrantKind};
use crate::lock::modes::Modes;
use crate::lock::pools::Seen;
use crate::lock::reconcile::{Cause, Change, Over};
use crate::lock::table::Entry;
use crate::lock::{
    Holder, Key, Kind, Lease, Look, Mode, Now, Owner, Refusal, Token, WakeTarget, WallMs,
};

/// What an owner asks for, and what it has.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub owner: &'a [u8],
    pub mode: Mode,
    pub share: Share,
    pub once: Once,
    pub has: Modes,
}

impl Asked<'_> {
    /// In what way it can have a lock that it has in this mode already; `None`: it has not.
    pub fn nested(&self, key: &Key) -> Result<Option<GrantKind>, Refusal> {
        if !self.has.has(self.mode) {
            return Ok(None);
        }
        match self.once {
            Once::Nests => {
                one_more(self.has.count(self.mode), key, self.owner)?;
                Ok(Some(GrantKind::Nest))
            }
            Once::IsTheSame => Ok(Some(GrantKind::Same)),
            Once::IsRefused => Err(self.held(key)),
        }
    }

    /// It is refused, for it has the lock already.
    pub fn held(&self, key: &Key) -> Refusal {
        let (key, owner) = (key.clone(), Owner::from(self.owner));
        Refusal::Held { key, owner }
    }
}

/// `D`: the decision under way, which stands on a floor above.
pub trait LockKind<D>: Sync {
    // Who may have it, and what is written then.

    /// In what way the owner can have the lock, which is held by some, whoever waits for it: that
    /// is for the caller. `None`: it is not to be had. `look` is read anew where others left by it.
    fn admit(
        &self,
        d: &mut D,
        key: &Key,
        asked: &Asked<'_>,
        look: &mut Look,
    ) -> Result<Option<GrantKind>, Refusal>;

    /// The owner has it, or once more; not for ONCE, with which it has it already. Secures the
    /// lock (`grant::secure`), writes, and puts down what is known then.
    fn give(
        &self,
        d: &mut D,
        key: &Key,
        want: &Want,
        how: GrantKind,
        look: Look,
        token: Token,
    ) -> Result<(), Refusal>;

    /// Sets the lease of an owner that holds the lock, in every mode.
    fn set_lease(&self, d: &mut D, key: &Key, owner: &Owner, look: &Look, at: WallMs);

    /// An owner has renewed its lease: what follows for the lock, as it was found before.
    fn renewed(&self, _: &mut D, _: &Key, _: &Look) {}

    /// So many holds of an owner end in each of these modes, as far as it has them: by RELEASE, a
    /// close, silence or a lost reply. The lock goes on if it was the last one. Writes; tells
    /// `Released` once; puts down what is known then, and tells who loses by it (`on_lost`); then
    /// `left_free` if nobody holds it any more, and `look_later` if somebody may get in.
    fn end(&self, d: &mut D, key: &Key, owner: &Owner, look: Look, ending: &[(Mode, i64)]);

    /// All holds are about to end by FORCE: what goes beside the hash goes now. Whom that wakes.
    fn force(&self, _: &mut D, _: &Key) -> Result<WakeTarget, Refusal> {
        Ok(WakeTarget::One)
    }

    // What is known of it, and what is found.

    /// Whether what was found is a lock, after all that can be known of it is known.
    fn is_lock(&self, _: &D, _: &Key, _: &Look) -> bool {
        true
    }

    /// Whether what is known of a lock that is held is of one of this kind.
    fn is_known(&self, known: &Entry) -> bool;

    /// Whether a hash without a field of any holder, that looks like this kind, was a lock whose
    /// holders are all gone. `known`: somebody is known to hold it.
    fn is_emptied(&self, _known: bool) -> bool {
        false
    }

    /// How what is known of the lock has to change by what this owner found: a lock of this
    /// kind is there, with holders, and was known, if any.
    fn diff(
        &self,
        known: &Entry,
        owner: &[u8],
        found: &Look,
        heard: Option<Cause>,
        now: Now,
    ) -> Option<Change>;

    /// Reads who holds it; who is new has joined (`Decision::joined`). Whether another look is due.
    fn learn(
        &self,
        d: &mut D,
        key: &Key,
        owner: &[u8],
        found: (&Look, Option<Cause>),
        over: &mut Over,
    ) -> bool;

    /// It ends at another moment, or so does this owner's own lease: with so many holds. Whether
    /// something was written.
    fn learn_end(
        &self,
        d: &mut D,
        key: &Key,
        owner: &[u8],
        found: &Look,
        its: Option<(Lease, i64)>,
    ) -> bool;

    /// The own lease of the owner that looked is over, where it has one beside that of the hash.
    fn end_own_lease(&self, _: &mut D, _: &Key, _: &[u8], _: &Look) {}

    /// Writes anew what the owner held by a watchdog, whose lease ran out while the server stood
    /// still. Whether it was.
    fn revive(&self, d: &mut D, key: &Key, owner: &Owner, at: WallMs) -> bool;

    // Of a lock that very many may hold, who are read in parts.

    /// What the hash says: if it says otherwise later, and not by our doing, all are read anew.
    fn seen(&self, _: &D, _: &Key, _: &Look) -> Option<Seen> {
        None
    }

    /// One of them was found. Whether the lock is there still; `dead`: readers whose lease keys
    /// are gone.
    fn learn_one(&self, _: &mut D, _: &Key, _: Holder, _dead: &mut Vec<Owner>) -> bool {
        false
    }

    /// One who is known was looked at.
    fn look_again(&self, _: &mut D, _: &Key, _: &Owner, _: &Look, _dead: &mut Vec<Owner>) {}

    /// All of them are read.
    fn all_read(&self, _: &mut D, _: &Key, _: &Look) {}
}

/// So many of these end in this mode.
pub fn of_mode(ending: &[(Mode, i64)], mode: Mode) -> i64 {
    let its = ending.iter().filter(|(of, _)| *of == mode);
    its.fold(0, |sum: i64, (_, by)| sum.saturating_add(*by))
}

/// All kinds there are.
pub struct Kinds<K: ?Sized + 'static> {
    pub plain: &'static K,
    pub read_write: &'static K,
    pub permits: &'static K,
}

impl<K: ?Sized> Kinds<K> {
    /// The one of a lock that was found; `None`: there is none.
    pub fn of(&self, found: &Look) -> Option<&'static K> {
        match found.kind {
            Kind::Plain => Some(self.plain),
            Kind::ReadWrite(_) => Some(self.read_write),
            Kind::Permits(_) => Some(self.permits),
            Kind::Free | Kind::Foreign(_) => None,
        }
    }

    /// The one that is held in this mode.
    pub fn in_mode(&self, mode: Mode) -> &'static K {
        match mode {
            Mode::Exclusive => self.plain,
            Mode::Read | Mode::Write => self.read_write,
            Mode::Permits => self.permits,
        }
    }
}
