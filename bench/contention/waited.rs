//! How long each of a crowd waits, by a clock that stands while the crowd rests.

use std::time::{Duration, Instant};

pub struct Waited {
    /// What the runs took so far.
    clock: Duration,
    /// When the run began that is under way.
    begun: Option<Instant>,
    /// Since when each waits.
    since: Vec<Option<Duration>>,
    longest: Duration,
}

impl Waited {
    /// All of them wait.
    pub fn new(count: usize) -> Self {
        Waited {
            clock: Duration::ZERO,
            begun: None,
            since: vec![Some(Duration::ZERO); count],
            longest: Duration::ZERO,
        }
    }

    pub fn go(&mut self) {
        self.begun = Some(Instant::now());
    }

    pub fn rest(&mut self) {
        self.clock = self.now();
        self.begun = None;
    }

    pub fn begins(&mut self, number: usize) {
        self.since[number] = Some(self.now());
    }

    pub fn ends(&mut self, number: usize) {
        if let Some(since) = self.since[number].take() {
            self.longest = self.longest.max(self.now() - since);
        }
    }

    /// What was so far does not count: who waits begins to wait.
    pub fn forget(&mut self) {
        let now = self.now();
        self.since
            .iter_mut()
            .flatten()
            .for_each(|since| *since = now);
        self.longest = Duration::ZERO;
    }

    /// With the waits that have not ended.
    pub fn longest(&self) -> Duration {
        let waits = self.since.iter().flatten();
        let waits = waits.map(|since| self.now() - *since);
        waits.fold(self.longest, Duration::max)
    }

    fn now(&self) -> Duration {
        self.clock + self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}
