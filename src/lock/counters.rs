//! Counters for operators.

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
    buckets: Vec<u64>,
    pub count: u64,
    pub longest_us: u64,
}

impl Waits {
    pub fn add(&mut self, us: i64) {
        let us = u64::try_from(us).unwrap_or(0);
        let at = bucket(us);
        if self.buckets.len() <= at {
            self.buckets.resize(at.saturating_add(1), 0);
        }
        if let Some(count) = self.buckets.get_mut(at) {
            *count = count.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.longest_us = self.longest_us.max(us);
    }

    /// The wait that so many in a hundred do not exceed.
    pub fn percentile(&self, hundredths: u64) -> u64 {
        let rank = self.count.saturating_mul(hundredths).div_ceil(100);
        let mut seen: u64 = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if *count > 0 && seen >= rank {
                return upper_end(at).min(self.longest_us);
            }
        }
        0
    }
}

fn bucket(us: u64) -> usize {
    if us < 4 {
        return usize::try_from(us).unwrap_or(0);
    }
    let power = us.ilog2();
    let quarter = (us >> power.saturating_sub(2)) & 3;
    let at = power.saturating_sub(1).saturating_mul(4);
    usize::try_from(u64::from(at).saturating_add(quarter)).unwrap_or(0)
}

/// The greatest time that falls into a bucket.
fn upper_end(at: usize) -> u64 {
    let at = u64::try_from(at).unwrap_or(0);
    if at < 4 {
        return at;
    }
    let shift = (at / 4).saturating_sub(1);
    let next = (at % 4).saturating_add(5);
    let end = u32::try_from(shift).ok().and_then(|s| next.checked_shl(s));
    end.unwrap_or(u64::MAX).saturating_sub(1)
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
        for us in (0..5_000).chain([1 << 40, u64::MAX >> 1]) {
            let at = bucket(us);
            assert!(upper_end(at) >= us, "{us}");
            assert!(at == 0 || upper_end(at - 1) < us, "{us}");
        }
    }
}
