//! The places of requests with ONCE whose connection has closed.
//!
//! Client libraries give a reply so many seconds, then close the connection and send the
//! request again by another. It is the same request, and has its place again if it comes
//! soon. Until then the place holds nobody up.

use std::collections::{BTreeMap, VecDeque};

use super::rank::Rank;
use super::waiter::Waiter;
use crate::lock::{Key, Mode, MonoUs, Now, Owner};

/// So many are kept; then the oldest go.
const MOST: usize = 16_384;

#[derive(Clone, Debug, Default)]
pub struct Kept {
    by_owner: BTreeMap<Owner, Vec<Place>>,
    /// Until when, in the order in which they came.
    order: VecDeque<(MonoUs, Owner)>,
}

#[derive(Clone, Debug)]
struct Place {
    waiter: Waiter,
    until: MonoUs,
}

impl Kept {
    /// The connection of this request is closed: its place is kept for so many ms.
    pub fn keep(&mut self, waiter: Waiter, ms: i64, now: Now) {
        let until = now.until(ms);
        let owner = waiter.want.owner.clone();
        self.forget(now.mono);
        if let Some((oldest, _)) = self.order.front().filter(|_| self.order.len() >= MOST) {
            self.forget(*oldest);
        }
        self.order.push_back((until, owner.clone()));
        let places = self.by_owner.entry(owner).or_default();
        places.push(Place { waiter, until });
    }

    /// The place of a request that is sent again, and since when it has waited.
    pub fn take(
        &mut self,
        owner: &[u8],
        keys: &[Key],
        mode: Mode,
        now: Now,
    ) -> Option<(Rank, MonoUs)> {
        self.forget(now.mono);
        let places = self.by_owner.get_mut(owner)?;
        let same = |place: &Place| place.until > now.mono && place.waiter.is_for(keys, mode);
        let all = places.iter().enumerate().filter(|(_, place)| same(place));
        let (at, _) = all.min_by(|(_, a), (_, b)| a.waiter.rank.cmp(&b.waiter.rank))?;
        let Waiter { rank, since, .. } = places.remove(at).waiter;
        if places.is_empty() {
            self.by_owner.remove(owner);
        }
        Some((rank, since))
    }

    /// What is kept until this moment is kept no more.
    fn forget(&mut self, now: MonoUs) {
        while let Some((_, owner)) = self.order.pop_front_if(|(until, _)| *until <= now) {
            if let Some(places) = self.by_owner.get_mut(&owner) {
                places.retain(|place| place.until > now);
                if places.is_empty() {
                    self.by_owner.remove(&owner);
                }
            }
        }
    }
}
