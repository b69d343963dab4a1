//! Counters for operators.

use std::collections::BTreeMap;

use super::Event;

/// How often each of these has happened since the module was loaded.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    // The events.
    pub acquired: u64,
    pub released: u64,
    pub renewed: u64,
    pub expired: u64,
    pub forced: u64,
    pub evicted: u64,
    /// Requests that did not find the lock at their disposal.
    pub contended: u64,
    pub timed_out: u64,
    pub deadlocks: u64,
    pub taken_back: u64,
    /// A lock was left free for those who wait by subscription,
    pub turns: u64,
    /// and one of them took it.
    pub turns_used: u64,
    /// How long those waited who were granted.
    pub waits: Waits,
}

/// A histogram of waiting times: four buckets to each power of two, so that a
/// percentile is too great by less than a quarter.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// By the greatest time that falls into each.
    buckets: BTreeMap<u64, u64>,
    pub count: u64,
    pub longest_us: u64,
}

impl Waits {
    pub fn add(&mut self, us: i64) {
        let us = u64::try_from(us).unwrap_or(0);
        Counters::up(self.buckets.entry(upper_end(us)).or_default());
        Counters::up(&mut self.count);
        self.longest_us = self.longest_us.max(us);
    }

    /// The wait that so many in a hundred do not exceed.
    pub fn percentile(&self, hundredths: u64) -> u64 {
        let rank = self.count.saturating_mul(hundredths).div_ceil(100);
        let mut seen: u64 = 0;
        for (end, count) in &self.buckets {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return (*end).min(self.longest_us);
            }
        }
        0
    }
}

/// The greatest time in the bucket of this one: the first three of its binary digits
/// tell which bucket that is.
fn upper_end(us: u64) -> u64 {
    let rest = us.checked_ilog2().unwrap_or(0).saturating_sub(2);
    us | !(u64::MAX << rest)
}

impl Counters {
    pub fn event(&mut self, event: Event) {
        Self::up(match event {
            Event::Acquired => &mut self.acquired,
            Event::Released => &mut self.released,
            Event::Renewed => &mut self.renewed,
            Event::Expired => &mut self.expired,
            Event::Forced => &mut self.forced,
            Event::Evicted => &mut self.evicted,
        });
    }

    pub fn up(count: &mut u64) {
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_near_the_truth() {
        let mut waits = Waits::default();
        (1..=10_000).for_each(|us| waits.add(us));
        for (hundredths, truth) in [(50, 5_000), (99, 9_900)] {
            let got = waits.percentile(hundredths);
            assert!(got >= truth && got * 4 <= truth * 5, "{got} for {truth}");
        }
        assert_eq!(waits.longest_us, 10_000);
    }

    #[test]
    fn each_time_falls_into_a_bucket_that_ends_no_earlier() {
        for us in (0..5_000).chain([1 << 40, u64::MAX >> 1, u64::MAX]) {
            let end = upper_end(us);
            assert!(end >= us && end - us <= us / 4, "{us}");
            assert_eq!(upper_end(end), end, "{us}");
            assert!(end == u64::MAX || upper_end(end + 1) > end, "{us}");
        }
    }

    #[test]
    fn there_are_four_buckets_to_each_power_of_two() {
        let mut ends: Vec<u64> = (1 << 10..1 << 11).map(upper_end).collect();
        ends.dedup();
        assert_eq!(ends, [1279, 1535, 1791, 2047]);
    }
}
