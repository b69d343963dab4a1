//! The places of requests with ONCE whose connection has closed.
//!
//! Client libraries give a reply so many seconds, then close the connection and send the
//! request again by another. It is the same request, and has its place again if it comes
//! soon. Until then the place holds nobody up.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::rank::Rank;
use super::waiter::Waiter;
use crate::lock::fifo::Fifo;
use crate::lock::{Key, Mode, MonoUs, Now, Owner, Share};

/// So many are kept; then the oldest go.
const MOST: usize = 16_384;

/// By what a request is known again: its owner, its mode and how much it is for, and its keys
/// in order.
type Same = (Owner, (Mode, Share), Vec<Key>);

#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Of requests that are the same at most one waits at a time.
    places: BTreeMap<Rc<Same>, Place>,
    /// Until when, in the order in which they came.
    order: Fifo<(MonoUs, Rc<Same>)>,
}

#[derive(Clone, Debug)]
struct Place {
    rank: Rank,
    since: MonoUs,
    until: MonoUs,
}

impl Kept {
    /// The connection of this request is closed: its place is kept for so many ms.
    pub fn keep(&mut self, waiter: &Waiter, ms: i64, now: Now) {
        if self.order.len() >= MOST {
            self.forget_first();
        }
        let want = &waiter.want;
        let asked = (want.mode, want.share);
        let same = Rc::new(same(&waiter.keys, want.owner.clone(), asked));
        let until = now.until(ms);
        self.order.push_back((until, same.clone()));
        let (rank, since) = (waiter.rank.clone(), waiter.since);
        self.places.insert(same, Place { rank, since, until });
    }

    /// The place of a request that is sent again, and since when it has waited.
    pub fn take(
        &mut self,
        keys: &[Key],
        owner: &[u8],
        asked: (Mode, Share),
        now: Now,
    ) -> Option<(Rank, MonoUs)> {
        if self.places.is_empty() {
            return None;
        }
        let place = self.places.remove(&same(keys, owner.into(), asked))?;
        (place.until > now.mono).then_some((place.rank, place.since))
    }

    /// An owner wants none of the places that are kept for it in the queue of a key.
    pub fn cancel(&mut self, key: &Key, owner: &[u8], mode: Option<Mode>) {
        let least = Share::new(0, 0);
        let first = same(&[], owner.into(), (Mode::Exclusive, least));
        let its = self.places.range(Rc::new(first)..).map(|(same, _)| same);
        let its = its.take_while(|same| *same.0 == *owner);
        let meant = |same: &&Rc<Same>| mode.is_none_or(|m| m == same.1 .0) && same.2.contains(key);
        let meant: Vec<Rc<Same>> = its.filter(meant).cloned().collect();
        for same in &meant {
            self.places.remove(same);
        }
    }

    /// Until when the oldest is kept.
    pub fn next_end(&self) -> Option<MonoUs> {
        self.order.front().map(|(until, _)| *until)
    }

    /// What is kept until this moment is kept no more, so many of them.
    pub fn forget(&mut self, now: MonoUs, most: usize) {
        for _ in 0..most {
            if self.next_end().is_none_or(|until| until > now) {
                return;
            }
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((until, same)) = self.order.pop_front() else {
            return;
        };
        // It may have been taken, and kept anew.
        if self.places.get(&same).is_some_and(|its| its.until == until) {
            self.places.remove(&same);
        }
    }
}

fn same(keys: &[Key], owner: Owner, asked: (Mode, Share)) -> Same {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    (owner, asked, keys)
}
