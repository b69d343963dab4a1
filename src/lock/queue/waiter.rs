//! A request that waits.

use super::keys::Keys;
use super::rank::Rank;
use crate::lock::address::Address;
use crate::lock::ask::{Once, Share, Want};
use crate::lock::types::Moment;
use crate::lock::{ClientId, Key, Keyspace, Mode, MonoUs, Now};

/// A request that stands in a queue.
#[derive(Clone, Debug)]
pub struct Waiter {
    pub keys: Keys,
    pub want: Want,
    pub rank: Rank,
    pub since: MonoUs,
    /// When its time is over; [`MonoUs::NEVER`]: it waits for ever.
    pub until: MonoUs,
    /// Which of its keys it lacked when it was tried.
    pub lacks: u32,
    /// Its client is not blocked: how the wait ends is told at the address.
    pub queued: bool,
}

impl Waiter {
    /// Where it is told how the wait ends, if its client is not blocked.
    pub fn told_at(&self) -> Option<&Address> {
        self.want.notify.as_ref().filter(|_| self.queued)
    }

    /// Whether it would get to know of its grant.
    pub fn would_hear(&self, ks: &mut dyn Keyspace) -> bool {
        self.told_at().is_none_or(|address| ks.reaches(address))
    }

    /// Its client, if that is blocked.
    pub fn blocked(&self) -> Option<ClientId> {
        self.want.client.filter(|_| !self.queued)
    }

    /// It is for these very keys, in this mode, for as much.
    pub fn is_for(&self, keys: &[Key], asked: (Mode, Share)) -> bool {
        let its = &*self.keys;
        let is_its = |key| its.contains(key);
        (self.want.mode, self.want.share) == asked
            && (its == keys || its.len() == keys.len() && keys.iter().all(is_its))
    }

    /// It wants several keys at once.
    pub fn is_many(&self) -> bool {
        self.keys.len() > 1
    }

    /// After a stall of the server: its time was over before the lock was free.
    pub fn is_late(&self, now: Now) -> bool {
        self.until <= now.mono
    }

    /// If it is sent again it has its place again. An upgrade has one of its own.
    pub fn keeps_its_place(&self) -> bool {
        self.want.once == Once::IsTheSame && !self.rank.is_front()
    }

    /// When its time is over, if ever.
    pub fn until(&self) -> Option<MonoUs> {
        Some(self.until).filter(|at| *at != MonoUs::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be a hundred thousand of them on one connection.
    #[test]
    fn a_waiter_is_small() {
        assert!(size_of::<Waiter>() <= 128, "{}", size_of::<Waiter>());
    }
}
