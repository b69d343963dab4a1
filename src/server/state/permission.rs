//! Whether this server may grant now, for INFO. It is looked once in a second at most, and only
//! while somebody asks: to look is to have the server check a command.

use std::cell::Cell;

use crate::server::sys::MachineUs;

/// Looks are so far apart, us.
const APART_US: i64 = 900_000;

/// Whoever has asked may ask again for so long, us.
const WANTED_FOR_US: i64 = 120_000_000;

/// Why nothing is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    Loading,
    Replica,
    /// CLIENT PAUSE, FAILOVER, a shutdown or a slot migration.
    Paused,
    /// `min-replicas-to-write`.
    NoReplicas,
    /// The last save or write to the AOF failed.
    Misconf,
    ClusterDown,
    /// It would refuse a write for some other reason.
    Refused,
    /// It stood still, and may have been replaced meanwhile.
    StoodStill,
}

impl Bar {
    /// By the code of the error that the server would refuse a write with.
    pub fn of_code(code: &str) -> Self {
        match code {
            "NOREPLICAS" => Self::NoReplicas,
            "MISCONF" => Self::Misconf,
            "CLUSTERDOWN" => Self::ClusterDown,
            "READONLY" => Self::Replica,
            "LOADING" => Self::Loading,
            _ => Self::Refused,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Replica => "replica",
            Self::Paused => "paused",
            Self::NoReplicas => "noreplicas",
            Self::Misconf => "misconf",
            Self::ClusterDown => "clusterdown",
            Self::Refused => "refused",
            Self::StoodStill => "stood-still",
        }
    }
}

#[derive(Default)]
pub struct Permission {
    asked: Cell<Option<MachineUs>>,
    looked: Cell<Option<MachineUs>>,
    bar: Cell<Option<Bar>>,
}

impl Permission {
    /// What was seen last; somebody wants to know.
    pub fn ask(&self, now: MachineUs) -> Option<Bar> {
        self.asked.set(Some(now));
        self.bar.get()
    }

    /// A beat of the server. `look`: looks what keeps it from granting.
    pub fn beat(&self, now: MachineUs, look: impl FnOnce() -> Option<Bar>) {
        let within =
            |at: &Cell<Option<MachineUs>>, us| at.get().is_some_and(|at| now.since(at) < us);
        if within(&self.asked, WANTED_FOR_US) && !within(&self.looked, APART_US) {
            self.looked.set(Some(now));
            self.bar.set(look());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    #[test]
    fn it_looks_once_a_second_while_somebody_asks() {
        let permission = Permission::default();
        let unlooked = || panic!("looked");
        permission.beat(MachineUs(S), unlooked);
        assert_eq!(permission.ask(MachineUs(S)), None);
        permission.beat(MachineUs(2 * S), || Some(Bar::Paused));
        permission.beat(MachineUs(2 * S + APART_US - 1), unlooked);
        assert_eq!(permission.ask(MachineUs(3 * S)), Some(Bar::Paused));
        permission.beat(MachineUs(3 * S), || None);
        assert_eq!(permission.ask(MachineUs(3 * S)), None);
        permission.beat(MachineUs(3 * S + WANTED_FOR_US), unlooked);
    }
}
