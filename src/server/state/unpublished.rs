//! Whether locks were left free without a message to those who wait by subscription.
//!
//! The message costs a lock that is taken and released a tenth, and more where many
//! clients subscribe to patterns; and on most servers nobody waits so. So it is looked for those
//! who do: when a message is to go out, but once between two beats of the server, and at a beat
//! if messages were put off. As long as nobody was seen they are put off to the next beat. If
//! somebody listens by that time, all who do are woken then, for it is not kept whose lock it was:
//! to be woken for nothing is to try once more. From then on messages go out at once, for a while.

use std::cell::Cell;

use crate::server::sys::MachineUs;

/// Beats that are nearer to each other than this, us, are one.
const APART_US: i64 = 90_000;

/// After somebody was seen to listen, messages go out at once for so long, us: 10 minutes.
const SEEN_FOR_US: i64 = 600_000_000;

#[derive(Default)]
pub struct Unpublished {
    /// A message was put off.
    any: Cell<bool>,
    /// When the last beat was,
    beaten: Cell<Option<MachineUs>>,
    /// whether it was looked since,
    looked: Cell<bool>,
    /// whether somebody wants to know who listens,
    asked: Cell<bool>,
    /// and when somebody was seen to listen.
    seen: Cell<Option<MachineUs>>,
    /// Somebody listens since the last beat.
    seen_now: Cell<bool>,
}

impl Unpublished {
    /// Puts a message off. `false`: it is to go out at once. `listens`: looks whether anybody
    /// may wait by subscription.
    pub fn put_off(&self, listens: impl FnOnce() -> bool) -> bool {
        let at_once = self.are_at_once(listens);
        if !at_once {
            self.any.set(true);
        }
        !at_once
    }

    /// Whether messages go out at once: it looks, if that is not known and it has not looked
    /// since the last beat.
    pub fn are_at_once(&self, listens: impl FnOnce() -> bool) -> bool {
        if !self.is_seen() && !self.looked.replace(true) && listens() {
            self.seen();
        }
        self.is_seen()
    }

    /// Somebody listens, or has of late.
    fn is_seen(&self) -> bool {
        self.seen_now.get() || self.seen.get().is_some()
    }

    /// Somebody listens.
    pub fn seen(&self) {
        self.seen_now.set(true);
    }

    /// Whether somebody listens, or has of late, as far as it was looked. At the next beat it
    /// is.
    pub fn ask(&self) -> bool {
        self.asked.set(true);
        self.is_seen()
    }

    /// A beat of the server. Whether those who listen are to be woken now ([`Self::take`]).
    pub fn beat(&self, now: MachineUs, listens: impl FnOnce() -> bool) -> bool {
        let last = self.beaten.get();
        if last.is_some_and(|at| now.since(at) < APART_US) {
            return self.is_due();
        }
        self.beaten.set(Some(now));
        self.looked.set(false);
        let seen = self.seen.get().filter(|at| now.since(*at) < SEEN_FOR_US);
        let seen_now = self.seen_now.take().then_some(now);
        self.seen.set(seen_now.or(seen));
        if self.asked.take() || self.any.get() {
            self.are_at_once(listens);
        }
        if !self.is_seen() {
            self.forget();
        }
        self.is_due()
    }

    /// Messages were put off, and somebody listens.
    pub fn is_due(&self) -> bool {
        self.is_seen() && self.any.get()
    }

    /// Whether any was put off; it is not any more.
    pub fn take(&self) -> bool {
        self.any.take()
    }

    /// Nobody has missed anything.
    pub fn forget(&self) {
        self.any.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: i64 = 100_000;

    fn unlooked() -> bool {
        panic!("looked")
    }

    #[test]
    fn messages_are_put_off_until_somebody_listens() {
        let off = Unpublished::default();
        assert!(off.put_off(|| false));
        assert!(off.put_off(unlooked), "it has looked");
        assert!(!off.beat(MachineUs(BEAT), || false));
        assert!(!off.take(), "nobody has missed it");
        assert!(off.put_off(unlooked), "the beat has looked");
        assert!(off.beat(MachineUs(2 * BEAT), || true));
        assert!(off.take());
        assert!(!off.take());
        assert!(!off.put_off(unlooked), "from now on at once");
        let later = 2 * BEAT + SEEN_FOR_US;
        off.beat(MachineUs(later), unlooked);
        off.seen();
        off.beat(MachineUs(later + BEAT), unlooked);
        assert!(!off.put_off(unlooked), "somebody was seen");
        off.beat(MachineUs(later + BEAT + SEEN_FOR_US), unlooked);
        assert!(off.put_off(|| false), "nobody was, for long");
    }

    #[test]
    fn with_nothing_put_off_nobody_looks() {
        let off = Unpublished::default();
        for n in 1..100 {
            assert!(!off.beat(MachineUs(n * BEAT), unlooked));
        }
        assert!(!off.put_off(|| true), "it looks first");
    }

    #[test]
    fn who_asks_gets_the_answer_after_the_next_beat() {
        let off = Unpublished::default();
        assert!(!off.ask());
        assert!(!off.beat(MachineUs(BEAT), || true));
        assert!(off.ask());
    }

    #[test]
    fn beats_that_come_fast_look_seldom() {
        let off = Unpublished::default();
        assert!(!off.beat(MachineUs(BEAT), unlooked));
        assert!(off.put_off(|| false));
        assert!(!off.beat(MachineUs(BEAT + APART_US - 1), unlooked));
        assert!(off.beat(MachineUs(BEAT + APART_US), || true));
    }
}
