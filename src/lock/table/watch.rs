//! Watchdog holds: the server renews their lease while their connection is open,
//! and they end with it.
//!
//! An owner has one lease on a key, whatever its holds; so it is watched as long
//! as one of its holds there is a watchdog's. Which of them a RELEASE ends depends
//! on who took them: that is remembered, but for holds that were found.

use std::collections::BTreeSet;

use crate::lock::{ClientId, Kind, Lease, Look, Mode, Now, WallMs};

/// Holds that one connection took one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The connection, as far as it is known.
    pub client: Option<ClientId>,
    /// They end with it.
    pub watched: bool,
    pub mode: Mode,
    pub holds: i64,
}

/// The holds of one owner on one key, by who took them, and what is watched.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// What the lease is renewed to, ms.
    pub lease: i64,
    /// No renewal goes beyond this.
    pub bound: Option<WallMs>,
    /// When it is renewed next.
    pub next: Option<WallMs>,
    /// The oldest first.
    pub taken: Vec<Taken>,
}

impl Watch {
    /// Some hold belongs to a connection.
    pub fn is_watched(&self) -> bool {
        self.taken.iter().any(|taken| taken.watched)
    }

    /// How many holds belong to a connection.
    pub fn watched_by(&self, client: ClientId) -> i64 {
        let all = self.taken.iter();
        let its = all.filter(|taken| taken.watched && taken.client == Some(client));
        its.fold(0, |sum, taken| sum.saturating_add(taken.holds))
    }

    /// The connections whose watchdog holds are among these.
    pub fn clients(&self) -> BTreeSet<ClientId> {
        let watched = self.taken.iter().filter(|taken| taken.watched);
        watched.filter_map(|taken| taken.client).collect()
    }

    /// How many holds there are in this mode.
    pub fn holds(&self, mode: Mode) -> i64 {
        let of = self.taken.iter().filter(|taken| taken.mode == mode);
        of.fold(0, |sum, taken| sum.saturating_add(taken.holds))
    }

    pub fn add(&mut self, new: Taken) {
        match self.taken.last_mut() {
            Some(last) if Taken { holds: 0, ..*last } == Taken { holds: 0, ..new } => {
                last.holds = last.holds.saturating_add(new.holds);
            }
            _ => self.taken.push(new),
        }
    }

    /// Takes away one hold in this mode: the newest that the connection took, else
    /// the newest that is no watchdog's, else the newest.
    pub fn drop_one(&mut self, mode: Mode, client: Option<ClientId>) {
        let newest = |fits: &dyn Fn(&Taken) -> bool| {
            let mut all = self.taken.iter();
            all.rposition(|taken| taken.mode == mode && fits(taken))
        };
        let at = newest(&|taken| client.is_some() && taken.client == client)
            .or_else(|| newest(&|taken| !taken.watched))
            .or_else(|| newest(&|_| true));
        if let Some(taken) = at.and_then(|at| self.taken.get_mut(at)) {
            taken.holds = taken.holds.saturating_sub(1);
        }
        self.taken.retain(|taken| taken.holds > 0);
    }

    /// Takes away all holds in this mode.
    pub fn drop_all(&mut self, mode: Mode) {
        self.taken.retain(|taken| taken.mode != mode);
    }

    /// Whether this connection took a hold in this mode that is there still.
    pub fn has(&self, mode: Mode, client: Option<ClientId>) -> bool {
        let mut taken = self.taken.iter();
        taken.any(|taken| taken.mode == mode && taken.client == client)
    }

    /// No hold belongs to a connection any more.
    pub fn rest(&mut self) {
        for taken in &mut self.taken {
            taken.watched = false;
        }
        (self.lease, self.bound, self.next) = (0, None, None);
    }

    /// What the lease is renewed to now.
    pub fn renewed_to(&self, now: Now) -> WallMs {
        let full = now.deadline(self.lease);
        self.bound.map_or(full, |bound| full.min(bound))
    }

    pub fn schedule(&mut self, now: Now) {
        let third = (self.lease / 3).max(1);
        self.next = Some(now.deadline(third));
    }

    /// The lease was to be renewed before it ended at this moment, and was not:
    /// the server stood still, or may not write.
    pub fn stalled(&self, ended: Option<WallMs>) -> bool {
        self.next.zip(ended).is_some_and(|(next, at)| next <= at)
    }
}

/// The lease of an owner's holds, in whatever mode it has them.
pub fn own_lease(look: &Look) -> Lease {
    match look.kind {
        Kind::ReadWrite(_) if look.writes == 0 => look.lease,
        Kind::Plain | Kind::ReadWrite(_) => look.expires.map_or(Lease::Endless, Lease::Until),
        Kind::Free | Kind::Foreign(_) => Lease::Gone,
    }
}
