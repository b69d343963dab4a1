//! How long the names of known read/write locks are.
//!
//! The name of a lease key can be read in up to 512 ways, as one lock's and its
//! reader's: the parts may hold what stands between them. To look each of these locks up
//! would be to hash a name of any length as often. Nearly all are no longer or shorter
//! than a lock that is known.

use std::collections::HashMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths(HashMap<usize, usize>);

/// Room for so many lengths is kept.
const FEW: usize = 64;

impl Lengths {
    /// A name of this length was one of them, and is now, or not.
    pub fn change(&mut self, len: usize, was: bool, is: bool) {
        if was == is {
            return;
        }
        let count = self.0.entry(len).or_default();
        debug_assert!(is || *count > 0, "what ends was counted");
        *count = if is {
            count.saturating_add(1)
        } else {
            count.saturating_sub(1)
        };
        if *count == 0 {
            self.0.remove(&len);
            if self.0.is_empty() {
                self.0.shrink_to(FEW);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, len: usize) -> bool {
        self.0.contains_key(&len)
    }
}
