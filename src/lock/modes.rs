//! In which modes an owner holds a lock, as it was found.

use super::reconcile::is_left_over;
use super::{Core, Key, Kind, Lease, Look, Mode};

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
