//! In which modes an owner holds a lock, as it was found.

use super::kind;
use super::kind::read_write::known::is_left_over;
use super::{Core, Key, Kind, Lease, Look, Mode, Owner, Refusal};

/// How many holds an owner has in each mode.
#[derive(Clone, Copy)]
pub struct Modes([(Mode, i64); 4]);

/// How many holds the owner that looked has in each mode.
pub fn modes(core: &Core, key: &Key, owner: &[u8], look: &Look) -> Modes {
    let may_be = look.kind.is_for_several() && look.holds > 0 && look.lease.is_missing();
    let left_over = may_be && is_left_over(core.locks.get(key), owner, look.lease);
    let held = |mode| kind::holds(look, left_over).find(|(held, ..)| *held == mode);
    Modes(Mode::ALL.map(|mode| (mode, held(mode).map_or(0, |(_, holds, _)| holds))))
}

impl Modes {
    pub fn count(self, mode: Mode) -> i64 {
        let of_mode = self.0.into_iter().find(|(its, _)| *its == mode);
        of_mode.map_or(0, |(_, holds)| holds)
    }

    pub fn has(self, mode: Mode) -> bool {
        self.count(mode) > 0
    }

    /// How many there are in each mode.
    pub fn counts(self) -> [(Mode, i64); 4] {
        self.0
    }

    /// One of them.
    pub fn any(self) -> Option<Mode> {
        let mut held = self.0.into_iter().filter(|(_, holds)| *holds > 0);
        held.next().map(|(mode, _)| mode)
    }

    /// A mode that it has and that does not go with this one.
    pub fn other_kind_than(self, mode: Mode) -> Option<Mode> {
        self.any().filter(|has| !has.mixes_with(mode))
    }
}

/// Refuses a key that is no lock.
pub fn require_lock(key: &Key, look: &Look) -> Result<(), Refusal> {
    let Kind::Foreign(why) = look.kind else {
        return Ok(());
    };
    let key = key.clone();
    Err(Refusal::NotALock { key, why })
}

/// How many holds the owner has in this mode. One that has none is refused.
pub fn require(
    core: &Core,
    key: &Key,
    owner: &[u8],
    mode: Mode,
    look: &Look,
) -> Result<i64, Refusal> {
    require_lock(key, look)?;
    let has = modes(core, key, owner, look);
    if has.has(mode) {
        return Ok(has.count(mode));
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
    if look.lease == Lease::Migrating && modes(core, key, owner, look).has(Mode::Read) {
        return Err(Refusal::Migrating { key: key.clone() });
    }
    Ok(())
}

/// Whether of some reader here it is not known if it lives.
pub fn is_half(core: &Core, key: &Key) -> bool {
    core.locks
        .shared(key)
        .is_some_and(|shared| shared.is_half())
}
