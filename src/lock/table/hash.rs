//! The hash of a name: a multiplication for eight bytes, by keys that nobody outside knows. A
//! client chooses names, and is never told a hash: so it cannot find many that are alike.

use std::hash::{BuildHasher, RandomState};

#[derive(Clone, Debug)]
pub struct NameHash {
    begin: u64,
    by: u64,
    order: u64,
}

impl Default for NameHash {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            begin: random.hash_one(0_u8),
            by: random.hash_one(1_u8),
            order: random.hash_one(2_u8),
        }
    }
}

impl NameHash {
    /// Drawn anew for each table: it tells the order of names in one from that in another.
    pub fn order(&self) -> u64 {
        self.order
    }

    pub fn of(&self, name: &[u8]) -> u64 {
        let (eights, rest) = name.as_chunks::<8>();
        let mut hash = fold(self.begin ^ length(name), self.by);
        for eight in eights {
            hash = fold(hash ^ u64::from_le_bytes(*eight), self.by);
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        fold(hash ^ u64::from_le_bytes(last), self.by | 1)
    }
}

fn length(name: &[u8]) -> u64 {
    u64::try_from(name.len()).unwrap_or(u64::MAX)
}

/// Both halves of a product, as one.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one).wrapping_mul(u128::from(other));
    let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
    u64::try_from(low ^ high).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_that_are_nearly_alike_are_spread() {
        let hash = NameHash::default();
        let names = (0..100_000).map(|number| format!("job:{number}"));
        let all: Vec<u64> = names.map(|name| hash.of(name.as_bytes())).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        // The parts of a table go by one byte, the places in one by others.
        for shift in [0, 8, 32, 57] {
            let mut counts = [0; 128];
            for hash in &all {
                counts[usize::try_from(hash >> shift & 127).unwrap()] += 1;
            }
            let (least, most) = (counts.iter().min(), counts.iter().max());
            assert!(
                least > Some(&600) && most < Some(&1000),
                "{shift}: {counts:?}"
            );
        }
    }

    #[test]
    fn what_stands_at_the_end_counts_and_so_does_the_length() {
        let hash = NameHash::default();
        let all: [&[u8]; 6] = [
            b"",
            b"\0",
            b"\0\0",
            b"12345678",
            b"12345678\0",
            b"123456780",
        ];
        let hashes: BTreeSet<u64> = all.iter().map(|name| hash.of(name)).collect();
        assert_eq!(hashes.len(), all.len());
        assert_ne!(NameHash::default().of(b"a"), hash.of(b"a"));
    }
}
