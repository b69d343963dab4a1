//! Turns strangers away before their names are hashed.
//!
//! It counts names by their length and their last bytes. A name that comes to a count of 0
//! is none of them; any other has to be looked up. A thousand names fill half of the counts.

use crate::lock::{place, PLACES};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sieve {
    counts: Vec<u32>,
    /// Of all names.
    names: usize,
}

impl Default for Sieve {
    fn default() -> Self {
        Self {
            counts: vec![0; PLACES],
            names: 0,
        }
    }
}

impl Sieve {
    pub fn is_empty(&self) -> bool {
        self.names == 0
    }

    /// The name was one of them, and is now, or not.
    pub fn change(&mut self, name: &[u8], was: bool, is: bool) {
        if was == is {
            return;
        }
        let Some(count) = self.counts.get_mut(place(name)) else {
            return;
        };
        debug_assert!(is || *count > 0, "what goes was counted");
        if is {
            *count = count.saturating_add(1);
            self.names = self.names.saturating_add(1);
        } else {
            *count = count.saturating_sub(1);
            self.names = self.names.saturating_sub(1);
        }
    }

    /// `false`: it is none of them.
    pub fn lets_through(&self, name: &[u8]) -> bool {
        self.counts.get(place(name)).is_some_and(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_counted_passes_and_most_others_do_not() {
        let mut sieve = Sieve::default();
        let short = ["", "x", "abc"].map(str::to_owned);
        let names = (0..100).map(|number| format!("lock:{number}"));
        let names: Vec<String> = names.chain(short).collect();
        for name in &names {
            sieve.change(name.as_bytes(), false, true);
            sieve.change(name.as_bytes(), true, true);
        }
        assert!(names.iter().all(|name| sieve.lets_through(name.as_bytes())));
        let strangers = (0..1000).map(|number| format!("other:{number}"));
        let through = strangers.filter(|name| sieve.lets_through(name.as_bytes()));
        assert!(through.count() < 200);
        for name in &names {
            sieve.change(name.as_bytes(), true, false);
        }
        assert!(sieve.is_empty());
        assert_eq!(sieve, Sieve::default());
    }
}
