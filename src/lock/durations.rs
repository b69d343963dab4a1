//! How long things took: a histogram, and the longest, of all time and of the last minute.

use super::WallMs;

/// The last minute is looked at in pieces of so many ms,
const PIECE_MS: i64 = 10_000;

/// of which this is one more than a minute has: the present one has only begun.
const PIECES: usize = 7;

/// Four buckets to each power of two, so that a percentile is too great by less than a
/// quarter.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// As many as were needed so far.
    buckets: Vec<u64>,
    pub count: u64,
    pub sum_us: u64,
    pub longest_us: u64,
    /// The pieces of the last minute, each in the place of the one that was so many before:
    /// its number, and the longest in it.
    latest: [(i64, u64); PIECES],
}

impl Durations {
    /// One of so many us is over.
    pub fn add(&mut self, us: i64, now: WallMs) {
        let us = u64::try_from(us).unwrap_or(0);
        let place = bucket(us);
        if place >= self.buckets.len() {
            self.buckets.resize(place.saturating_add(1), 0);
        }
        if let Some(count) = self.buckets.get_mut(place) {
            *count = count.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum_us = self.sum_us.saturating_add(us);
        self.longest_us = self.longest_us.max(us);
        let number = now.0.div_euclid(PIECE_MS);
        let place = usize::try_from(number.rem_euclid(PIECES as i64)).unwrap_or(0);
        if let Some(piece) = self.latest.get_mut(place) {
            let longest = if piece.0 == number { piece.1 } else { 0 };
            *piece = (number, longest.max(us));
        }
    }

    /// What so many in a hundred do not exceed, us.
    pub fn percentile(&self, hundredths: u64) -> u64 {
        let rank = self.count.saturating_mul(hundredths).div_ceil(100);
        let mut seen: u64 = 0;
        for (place, count) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if *count > 0 && seen >= rank {
                return upper_end(place).min(self.longest_us);
            }
        }
        0
    }

    /// The longest of the last minute, or of up to ten seconds more, us.
    pub fn longest_of_late(&self, now: WallMs) -> u64 {
        let number = now.0.div_euclid(PIECE_MS);
        let first = number.saturating_sub(PIECES as i64);
        let late = self.latest.iter();
        let late = late.filter(|(piece, _)| *piece > first && *piece <= number);
        late.map(|(_, longest)| *longest).max().unwrap_or(0)
    }
}

/// The bucket of a time: its first three binary digits tell which that is.
fn bucket(us: u64) -> usize {
    let shift = us.checked_ilog2().unwrap_or(0).saturating_sub(2);
    let first = us.checked_shr(shift).unwrap_or(0);
    let place = u64::from(shift).saturating_mul(4).saturating_add(first);
    usize::try_from(place).unwrap_or(0)
}

/// The greatest time in a bucket.
fn upper_end(place: usize) -> u64 {
    let place = u64::try_from(place).unwrap_or(0);
    let shift = u32::try_from((place / 4).saturating_sub(1)).unwrap_or(0);
    let first = place.saturating_sub(u64::from(shift).saturating_mul(4));
    let start = first.checked_shl(shift).unwrap_or(0);
    start | !u64::MAX.checked_shl(shift).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallMs = WallMs(1_000_000);

    #[test]
    fn percentiles_are_near_the_truth() {
        let mut all = Durations::default();
        (1..=10_000).for_each(|us| all.add(us, NOW));
        for (hundredths, truth) in [(50, 5_000), (99, 9_900)] {
            let got = all.percentile(hundredths);
            assert!(got >= truth && got * 4 <= truth * 5, "{got} for {truth}");
        }
        assert_eq!((all.longest_us, all.count), (10_000, 10_000));
        assert_eq!(all.sum_us, 50_005_000);
        assert_eq!(Durations::default().percentile(99), 0);
        // A clock that was set back.
        let mut none = Durations::default();
        none.add(-5, NOW);
        assert_eq!((none.percentile(50), none.count, none.sum_us), (0, 1, 0));
    }

    #[test]
    fn each_time_falls_into_a_bucket_that_ends_no_earlier() {
        for us in (0..5_000).chain([1 << 40, u64::MAX >> 1, u64::MAX]) {
            let end = upper_end(bucket(us));
            assert!(end >= us && end - us <= us / 4, "{us}");
            assert_eq!(bucket(end), bucket(us), "{us}");
            assert!(end == u64::MAX || bucket(end + 1) == bucket(us) + 1, "{us}");
        }
    }

    #[test]
    fn there_are_four_buckets_to_each_power_of_two() {
        let mut ends: Vec<u64> = (1 << 10..1 << 11).map(bucket).map(upper_end).collect();
        ends.dedup();
        assert_eq!(ends, [1279, 1535, 1791, 2047]);
    }

    #[test]
    fn the_longest_of_late_is_that_of_a_minute() {
        let mut all = Durations::default();
        let at = |seconds: i64| WallMs(seconds * 1000);
        assert_eq!(all.longest_of_late(at(0)), 0);
        all.add(50, at(1000));
        all.add(20, at(1003));
        all.add(30, at(1030));
        for (seconds, longest) in [
            (1000, 50),
            (1060, 50),
            (1069, 50),
            (1070, 30),
            (1090, 30),
            (1099, 30),
            (1100, 0),
            // The clock was set back.
            (900, 0),
        ] {
            assert_eq!(all.longest_of_late(at(seconds)), longest, "{seconds}");
        }
        assert_eq!(all.longest_us, 50);
        // In the place of a piece that is long over.
        all.add(10, at(1070));
        assert_eq!(all.longest_of_late(at(1070)), 30);
    }
}
