//! Locks that were left free without a message to those who wait by subscription.
//!
//! The message costs a lock that is taken and released a tenth, and more where many
//! clients subscribe to patterns; and on most servers nobody waits so. So at each beat of
//! the server it is looked for those who do. As long as nobody was seen, messages are put off to
//! the next beat: they go out then, if somebody listens by that time. From then on they go
//! out at once, for a while.

use std::cell::{Cell, RefCell};

use crate::lock::{Key, Whom};
use crate::server::sys::MachineUs;

/// So many are put off within one beat, at most.
const MOST: usize = 4096;

/// No two looks are nearer to each other than this, us.
const APART_US: i64 = 90_000;

/// Channels are counted anew after so long, us: INFO takes longer than all else at a beat.
const COUNTED_FOR_US: i64 = 1_000_000;

/// After somebody was seen to listen, messages go out at once for so long, us: 10 minutes.
const SEEN_FOR_US: i64 = 600_000_000;

#[derive(Default)]
pub struct Unpublished {
    keys: RefCell<Vec<(Key, Whom)>>,
    /// When it was looked last,
    looked: Cell<Option<MachineUs>>,
    /// when channels were counted, and whether they are few enough to be looked through,
    counted: Cell<Option<(MachineUs, bool)>>,
    /// and when somebody was seen to listen.
    seen: Cell<Option<MachineUs>>,
    /// Somebody listens since the last beat.
    seen_now: Cell<bool>,
}

impl Unpublished {
    /// Puts a message off. `false`: it is to go out at once.
    pub fn put_off(&self, key: &Key, whom: Whom) -> bool {
        if self.is_at_once() {
            return false;
        }
        let mut keys = self.keys.borrow_mut();
        if keys.last().is_some_and(|last| *last == (key.clone(), whom)) {
            return true;
        }
        let fits = keys.len() < MOST;
        if fits {
            keys.push((key.clone(), whom));
        }
        fits
    }

    /// Somebody listens, or has of late.
    pub fn is_at_once(&self) -> bool {
        self.seen_now.get() || self.seen.get().is_some()
    }

    /// Somebody listens.
    pub fn seen(&self) {
        self.seen_now.set(true);
    }

    /// A beat of the server. `count`: looks whether channels are few; `listens`: whether
    /// anybody may wait by subscription, where they are few or not. Whether messages are to go
    /// out now ([`Self::take`]).
    pub fn beat(
        &self,
        now: MachineUs,
        count: impl FnOnce() -> bool,
        listens: impl FnOnce(bool) -> bool,
    ) -> bool {
        let looked = self.looked.get();
        if looked.is_some_and(|at| now.since(at) < APART_US) {
            return self.is_due();
        }
        self.looked.set(Some(now));
        let seen = self.seen.get().filter(|at| now.since(*at) < SEEN_FOR_US);
        let listens = || listens(self.are_few(now, count));
        let listens = self.seen_now.take() || (seen.is_none() && listens());
        self.seen.set(if listens { Some(now) } else { seen });
        if !self.is_at_once() {
            self.forget();
        }
        self.is_due()
    }

    fn are_few(&self, now: MachineUs, count: impl FnOnce() -> bool) -> bool {
        let known = self.counted.get();
        let known = known.filter(|(at, _)| now.since(*at) < COUNTED_FOR_US);
        let (at, few) = known.unwrap_or_else(|| (now, count()));
        self.counted.set(Some((at, few)));
        few
    }

    /// Messages were put off, and somebody listens.
    pub fn is_due(&self) -> bool {
        self.is_at_once() && !self.keys.borrow().is_empty()
    }

    pub fn take(&self) -> Vec<(Key, Whom)> {
        self.keys.take()
    }

    /// Nobody has missed anything.
    pub fn forget(&self) {
        self.keys.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: i64 = 100_000;

    fn off() -> (Unpublished, Key) {
        (Unpublished::default(), Key::new(0, b"k"))
    }

    #[test]
    fn messages_are_put_off_until_somebody_listens() {
        let (off, key) = off();
        assert!(off.put_off(&key, Whom::One));
        assert!(off.put_off(&key, Whom::One), "it is kept once");
        assert!(!off.beat(MachineUs(BEAT), few, |_| false));
        assert_eq!(off.take(), []);
        assert!(off.put_off(&key, Whom::One));
        assert!(off.beat(MachineUs(2 * BEAT), few, |_| true));
        assert_eq!(off.take(), [(key.clone(), Whom::One)]);
        assert!(!off.put_off(&key, Whom::One), "from now on at once");
        let later = 2 * BEAT + SEEN_FOR_US;
        off.beat(MachineUs(later - BEAT), few, |_| panic!("looked"));
        off.seen();
        off.beat(MachineUs(later), few, |_| panic!("looked"));
        assert!(!off.put_off(&key, Whom::One), "somebody was seen");
        off.beat(MachineUs(later + SEEN_FOR_US), few, |_| false);
        assert!(off.put_off(&key, Whom::One), "nobody was, for long");
    }

    fn few() -> bool {
        true
    }

    #[test]
    fn channels_are_counted_once_a_second() {
        let (off, _) = off();
        let is = |expected: bool| move |few: bool| few != expected;
        assert!(!off.beat(MachineUs(BEAT), || false, is(false)));
        assert!(!off.beat(MachineUs(2 * BEAT), || panic!("counted"), is(false)));
        assert!(!off.beat(MachineUs(BEAT + COUNTED_FOR_US), few, is(true)));
        assert!(!off.is_at_once(), "what was counted was told");
    }

    #[test]
    fn beats_that_come_fast_look_seldom() {
        let (off, key) = off();
        assert!(!off.beat(MachineUs(BEAT), few, |_| false));
        assert!(off.put_off(&key, Whom::One));
        assert!(!off.beat(MachineUs(BEAT + APART_US - 1), few, |_| panic!("looked")));
        assert!(off.beat(MachineUs(BEAT + APART_US), few, |_| true));
    }

    #[test]
    fn more_than_so_many_are_not_put_off() {
        let (off, _) = off();
        let key = |n: usize| Key::new(0, n.to_string().as_bytes());
        assert!((0..MOST).all(|n| off.put_off(&key(n), Whom::One)));
        assert!(!off.put_off(&key(MOST), Whom::One));
    }
}
