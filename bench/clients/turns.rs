//! Who had one lock, and when, by a clock that is the same in all processes.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use crate::load::Outcome;

/// What a worker did with the lock in its hands: it read the clock twice.
#[derive(Clone, Copy)]
struct Turn {
    /// Its process, and which of that one's.
    worker: (usize, u64),
    acquired: u64,
    released: u64,
}

/// In the order of time.
pub struct Turns(Vec<Turn>);

impl Turns {
    /// Of what each process says of its own.
    pub fn merged(said: &[String]) -> Outcome<Self> {
        let mut turns = Vec::new();
        for (process, line) in said.iter().enumerate() {
            let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
            let numbers = numbers?;
            let (triples, []) = numbers.as_chunks() else {
                return Err("a process tells a part of a turn".into());
            };
            turns.extend(triples.iter().map(|&[number, acquired, released]| Turn {
                worker: (process, number),
                acquired,
                released,
            }));
        }
        turns.sort_by_key(|turn| turn.acquired);
        Ok(Turns(turns))
    }

    /// How many of them began before one from earlier was over.
    pub fn overlaps(&self) -> usize {
        let mut free = 0;
        let overlaps = self.0.iter().filter(|turn| {
            let overlaps = turn.acquired < free;
            free = free.max(turn.released);
            overlaps
        });
        overlaps.count()
    }

    /// How many ms a worker went without a turn, at the most; who had none waited all the time.
    pub fn longest(&self, time: &Range<Duration>) -> f64 {
        let (start, end) = (time.start.as_nanos() as u64, time.end.as_nanos() as u64);
        let mut last = HashMap::new();
        let mut longest = 0;
        for turn in &self.0 {
            let at = turn.acquired.clamp(start, end);
            let before = last.insert(turn.worker, at).unwrap_or(start);
            longest = longest.max(at - before);
        }
        let waiting = last.values().map(|at| end.saturating_sub(*at)).max();
        longest.max(waiting.unwrap_or(end - start)) as f64 / 1e6
    }

    /// How often it went from one worker to another, of the turns that began in that time.
    pub fn hand_overs(&self, time: &Range<Duration>) -> usize {
        let within = |turn: &&Turn| time.contains(&Duration::from_nanos(turn.acquired));
        let workers: Vec<_> = self
            .0
            .iter()
            .filter(within)
            .map(|turn| turn.worker)
            .collect();
        workers.windows(2).filter(|two| two[0] != two[1]).count()
    }
}

/// The clock of the turns.
pub fn clock() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: It writes to the one struct, which outlives the call; every Linux has that clock.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
