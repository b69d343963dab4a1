//! How long a thread has had a processor, and stood in line for one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::Outcome;

/// What the system tells of one thread.
pub struct Processor(File);

/// Both in ms, since the thread began.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    /// On a processor: counted when the thread rests, and a few ms at a time while it runs.
    pub ran: f64,
    /// Ready to run, while others had all processors: counted when it gets one.
    pub stood_by: f64,
}

impl Processor {
    /// Of the thread whose `schedstat` this is; of a process it is the first thread's.
    pub fn open(path: &str) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Of the thread that asks.
    pub fn of_this_thread() -> io::Result<Self> {
        Self::open("/proc/thread-self/schedstat")
    }

    /// So far.
    pub fn spent(&self) -> Outcome<Spent> {
        let mut text = [0; 128];
        let length = self.0.read_at(&mut text, 0)?;
        let mut numbers = std::str::from_utf8(&text[..length])?.split_whitespace();
        let mut ms = || -> Outcome<f64> {
            let ns = numbers.next().ok_or("the system does not show threads")?;
            Ok(ns.parse::<f64>()? / 1e6)
        };
        Ok(Spent {
            ran: ms()?,
            stood_by: ms()?,
        })
    }

    /// What was spent since then.
    pub fn since(&self, then: Spent) -> Outcome<Spent> {
        let now = self.spent()?;
        Ok(Spent {
            ran: now.ran - then.ran,
            stood_by: now.stood_by - then.stood_by,
        })
    }
}
