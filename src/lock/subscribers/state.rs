//! What is known of those who wait by subscription: for which locks, and whether they
//! have a place in the queue.

use std::collections::BTreeMap;

use crate::lock::deadlines::Deadlines;
use crate::lock::queue::Rank;
use crate::lock::{Key, MonoUs, Now};

/// Within so many grants a turn comes, as long as turns are used.
const NEAR: u32 = 8;

/// And so many after turns that nobody used.
const FARTHEST: u32 = 64;

/// For so long it is remembered that a turn was in vain, us.
const REMEMBERED_US: i64 = 60_000_000;

/// Beyond so many locks, or bytes of their names, no turn in vain is remembered.
const MOST_KNOWN: usize = 16_384;
const MOST_BYTES: usize = 1 << 20;

/// Those who wait for one lock.
#[derive(Clone, Debug)]
struct Known {
    /// They wait for a read/write lock.
    shared: bool,
    /// Within how many grants their next turn comes.
    distance: u32,
    /// So many grants more, and they may have a place.
    not_before: u32,
    place: Option<Place>,
    /// When it is asked next whether somebody listens still, or without a place, when
    /// all of this is forgotten.
    due: Option<MonoUs>,
}

/// A place in the queue of a lock for all who wait for it by subscription.
#[derive(Clone, Debug)]
pub struct Place {
    pub rank: Rank,
    /// Their turn is under way, until then.
    pub turn: Option<MonoUs>,
}

#[derive(Clone, Debug, Default)]
pub struct Subscribers {
    known: BTreeMap<Key, Known>,
    due: Deadlines<MonoUs, Key>,
    /// How many of them have a place.
    places: usize,
    /// Of the names.
    bytes: usize,
}

impl Subscribers {
    /// Nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether anybody has a place anywhere.
    pub fn have_places(&self) -> bool {
        self.places > 0
    }

    /// Whether anything is known of those who wait for this lock.
    pub fn knows(&self, key: &Key) -> bool {
        self.known.contains_key(key)
    }

    pub fn place(&self, key: &Key) -> Option<&Place> {
        if self.places == 0 {
            return None;
        }
        self.known.get(key)?.place.as_ref()
    }

    /// It is their turn: the key is left free for them.
    pub fn is_turn(&self, key: &Key) -> bool {
        self.place(key).is_some_and(|place| place.turn.is_some())
    }

    /// They wait for a read/write lock.
    pub fn are_shared(&self, key: &Key) -> bool {
        self.known.get(key).is_some_and(|known| known.shared)
    }

    /// They have a place, or had a turn in vain a while ago: nobody need ask for them.
    pub fn are_served(&self, key: &Key) -> bool {
        let known = self.known.get(key);
        known.is_some_and(|known| known.place.is_some() || known.not_before > 0)
    }

    /// When it is asked next whether somebody listens still.
    pub fn next_look(&self, key: &Key) -> Option<MonoUs> {
        self.place(key)?;
        self.known.get(key)?.due
    }

    /// When something is to be looked at, or forgotten.
    pub fn next_due(&self) -> Option<MonoUs> {
        self.due.first()
    }

    /// The keys at which it is to be asked whether somebody listens still, at most so
    /// many, and whether each is a read/write lock. What has been remembered for long
    /// enough is forgotten.
    pub fn take_due(&mut self, now: Now, most: usize) -> Vec<(Key, bool)> {
        let mut due = Vec::new();
        for key in self.due.at(now.mono, most) {
            match self.place(&key) {
                Some(_) => due.push((key.clone(), self.are_shared(&key))),
                None => drop(self.forget(&key)),
            }
        }
        due
    }

    /// Somebody is found to wait: they have a place here, unless they have one or had
    /// a turn in vain too few grants ago.
    pub fn put(&mut self, key: &Key, shared: bool, rank: impl FnOnce() -> Rank) {
        if self.known.len() >= MOST_KNOWN || self.bytes >= MOST_BYTES {
            self.forget_turns_in_vain();
        }
        let known = self.known.entry(key.clone()).or_insert_with(|| {
            self.bytes = self.bytes.saturating_add(key.name.len());
            Known {
                shared,
                distance: NEAR,
                not_before: 0,
                place: None,
                due: None,
            }
        });
        known.shared = shared;
        if known.place.is_none() && known.not_before == 0 {
            let (rank, turn) = (rank(), None);
            known.place = Some(Place { rank, turn });
            self.places = self.places.saturating_add(1);
            self.set_due(key, None);
        }
    }

    fn forget_turns_in_vain(&mut self) {
        let known = self.known.iter();
        let in_vain = known.filter(|(_, known)| known.place.is_none());
        let in_vain: Vec<Key> = in_vain.map(|(key, _)| key.clone()).collect();
        for key in in_vain {
            self.forget(&key);
        }
    }

    /// Their turn begins. Whether they have a place.
    pub fn begin_turn(&mut self, key: &Key, until: MonoUs, look: MonoUs) -> bool {
        let known = self.known.get_mut(key);
        let Some(place) = known.and_then(|known| known.place.as_mut()) else {
            return false;
        };
        place.turn = Some(until);
        self.set_due(key, Some(look));
        true
    }

    /// Nobody has used their turn: they have no place any more, and the next one comes
    /// later.
    pub fn turn_was_in_vain(&mut self, key: &Key, now: Now) {
        let Some(known) = self.known.get_mut(key) else {
            return;
        };
        if known.place.take().is_some() {
            self.places = self.places.saturating_sub(1);
        }
        known.distance = known.distance.saturating_mul(2).min(FARTHEST);
        known.not_before = known.distance.saturating_sub(NEAR);
        let end = now.mono.plus_us(REMEMBERED_US);
        self.set_due(key, Some(end));
    }

    /// Sets when it is asked next whether somebody listens still.
    pub fn look_at(&mut self, key: &Key, at: Option<MonoUs>) {
        if self.place(key).is_some() {
            self.set_due(key, at);
        }
    }

    fn set_due(&mut self, key: &Key, at: Option<MonoUs>) {
        if let Some(known) = self.known.get_mut(key) {
            let from = std::mem::replace(&mut known.due, at);
            self.due.change(key, from, at);
        }
    }

    /// One grant more of the key, to an owner that had it not.
    pub fn count_grant(&mut self, key: &Key) {
        if let Some(known) = self.known.get_mut(key) {
            known.not_before = known.not_before.saturating_sub(1);
        }
    }

    /// Forgets who waits for a key. Whether anything was known.
    pub fn forget(&mut self, key: &Key) -> bool {
        let Some(known) = self.known.remove(key) else {
            return false;
        };
        debug_assert!(self.bytes >= key.name.len(), "each name is counted");
        if known.place.is_some() {
            debug_assert!(self.places > 0, "each place is counted");
            self.places = self.places.saturating_sub(1);
        }
        self.bytes = self.bytes.saturating_sub(key.name.len());
        self.due.change(key, known.due, None);
        true
    }

    /// Asserts that the counts and the index are those of what is known.
    #[cfg(test)]
    pub fn check(&self) {
        let all = || self.known.iter();
        assert_eq!(
            all().filter(|(_, k)| k.place.is_some()).count(),
            self.places
        );
        assert_eq!(
            all().filter(|(_, k)| k.due.is_some()).count(),
            self.due.len()
        );
        assert_eq!(
            all().map(|(key, _)| key.name.len()).sum::<usize>(),
            self.bytes
        );
        // Without a place it is forgotten some time.
        assert!(all().all(|(_, k)| k.place.is_some() || k.due.is_some() || k.not_before == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{WaiterId, WallUs};

    fn now(us: i64) -> Now {
        Now {
            wall: WallUs(0),
            mono: MonoUs(us),
            ends_early: false,
        }
    }

    fn turn_in_vain(subscribers: &mut Subscribers, key: &Key) {
        subscribers.put(key, false, || Rank::arrived(WaiterId::FIRST));
        assert!(subscribers.begin_turn(key, MonoUs(20), MonoUs(5)));
        subscribers.turn_was_in_vain(key, now(20));
        subscribers.check();
    }

    #[test]
    fn a_turn_in_vain_is_known_of_its_lock_alone_and_for_a_minute() {
        let (key, other) = (Key::new(0, b"key"), Key::new(0, b"other"));
        let mut subscribers = Subscribers::default();
        turn_in_vain(&mut subscribers, &key);
        assert!(subscribers.knows(&key) && subscribers.are_served(&key));
        assert!(!subscribers.knows(&other) && !subscribers.have_places());
        let end = 20 + REMEMBERED_US;
        assert_eq!(subscribers.next_due(), Some(MonoUs(end)));
        assert_eq!(subscribers.take_due(now(end - 1), 10), []);
        assert!(subscribers.knows(&key));
        assert_eq!(subscribers.take_due(now(end), 10), []);
        assert!(subscribers.is_empty());
        subscribers.check();
    }

    #[test]
    fn turns_in_vain_are_remembered_up_to_a_number_and_to_so_many_bytes() {
        let long = "x".repeat(10_000);
        for suffix in ["", &long] {
            let mut subscribers = Subscribers::default();
            let keeps = Key::new(0, b"keeps its place");
            subscribers.put(&keeps, true, || Rank::arrived(WaiterId::FIRST));
            for number in 0..if suffix.is_empty() {
                2 * MOST_KNOWN
            } else {
                300
            } {
                let name = format!("{number}{suffix}");
                turn_in_vain_unchecked(&mut subscribers, &Key::new(0, name.as_bytes()));
                assert!(subscribers.known.len() <= MOST_KNOWN);
                assert!(subscribers.bytes <= MOST_BYTES + name.len());
            }
            assert!(subscribers.place(&keeps).is_some());
            subscribers.check();
        }
    }

    fn turn_in_vain_unchecked(subscribers: &mut Subscribers, key: &Key) {
        subscribers.put(key, false, || Rank::arrived(WaiterId::FIRST));
        subscribers.turn_was_in_vain(key, now(20));
    }
}
