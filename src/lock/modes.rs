//! In which modes an owner holds a lock, as it was found.

use super::reconcile::is_left_over;
use super::{Core, Key, Kind, Lease, Look, Mode, Owner, Refusal};

/// In which modes an owner holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    pub plain: bool,
    pub reads: bool,
    pub writes: bool,
}

/// In which modes the owner that looked holds the lock.
pub fn modes(core: &Core, key: &Key, owner: &[u8], look: &Look) -> Modes {
    let shared = matches!(look.kind, Kind::ReadWrite(_));
    let plain = match look.kind {
        Kind::Plain => look.holds > 0,
        // Somebody made a read/write lock of the plain lock it holds.
        Kind::ReadWrite(_) => {
            look.holds > 0 && is_left_over(core.locks.get(key), owner, look.lease)
        }
        Kind::Free | Kind::Foreign(_) => false,
    };
    Modes {
        plain,
        reads: shared && look.holds > 0 && look.lease != Lease::Gone && !plain,
        writes: shared && look.writes > 0,
    }
}

impl Modes {
    pub fn has(self, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => self.plain,
            Mode::Read => self.reads,
            Mode::Write => self.writes,
        }
    }

    /// One of them.
    pub fn any(self) -> Option<Mode> {
        [Mode::Exclusive, Mode::Write, Mode::Read]
            .into_iter()
            .find(|mode| self.has(*mode))
    }

    /// A mode that it has and that does not go with this one.
    pub fn other_kind_than(self, mode: Mode) -> Option<Mode> {
        let plain = |mode| mode == Mode::Exclusive;
        self.any().filter(|has| plain(*has) != plain(mode))
    }
}

/// Refuses a key that is no lock.
pub fn require_lock(key: &Key, look: &Look) -> Result<(), Refusal> {
    match look.kind {
        Kind::Foreign(why) => {
            let key = key.clone();
            Err(Refusal::NotALock { key, why })
        }
        Kind::Free | Kind::Plain | Kind::ReadWrite(_) => Ok(()),
    }
}

/// Refuses an owner that does not hold the key in this mode.
pub fn require(
    core: &Core,
    key: &Key,
    owner: &[u8],
    mode: Mode,
    look: &Look,
) -> Result<(), Refusal> {
    require_lock(key, look)?;
    let has = modes(core, key, owner, look);
    if has.has(mode) {
        return Ok(());
    }
    Err(Refusal::NotHeld {
        key: key.clone(),
        owner: Owner::from(owner),
        asked: mode,
        held_for: has.any(),
    })
}

/// Refuses what would read or write the lease keys of an owner that are not here.
pub fn require_leases(core: &Core, key: &Key, owner: &[u8], look: &Look) -> Result<(), Refusal> {
    if look.lease == Lease::Away && modes(core, key, owner, look).reads {
        return Err(Refusal::OnItsWay { key: key.clone() });
    }
    Ok(())
}

/// Whether of some reader here it is not known if it lives.
pub fn is_half(core: &Core, key: &Key) -> bool {
    core.locks
        .shared(key)
        .is_some_and(|shared| shared.is_half())
}
