//! How long another client waits for the server while it is at something.
//!
//! On a machine that is busy with other work a server that never rests is put off its
//! processor for longer than any piece of its work takes, and one at rest is not. So what the
//! server, and the client that asks, stood in line for a processor is taken off each wait, and
//! the longest is shown with it too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::load::{Outcome, Processor, Server, Spent};
use crate::report::{grouped, Report, Table, Target};
use crate::stats::{median, quantile};

/// How often the client of [`beside`] asks.
pub const EVERY: Duration = Duration::from_millis(1);

/// Round trips.
pub struct Waits(Vec<Wait>);

/// One of them, in ms.
struct Wait {
    took: f64,
    /// What the server did meanwhile, and what it and the client stood in line for a processor.
    server: Spent,
    client: Spent,
}

impl Wait {
    /// Without the time in line for a processor. Where both stood there at once that would be
    /// taken off twice: it is no less than the server worked.
    fn served(&self) -> f64 {
        let stood_by = self.server.stood_by + self.client.stood_by;
        (self.took - stood_by).max(self.server.ran.min(self.took))
    }
}

impl Waits {
    /// The longest, without the time in line for a processor.
    pub fn longest(&self) -> f64 {
        quantile(&self.each(Wait::served), 1.0)
    }

    /// 999 in 1,000 took no longer, without that time.
    pub fn p999(&self) -> f64 {
        quantile(&self.each(Wait::served), 0.999)
    }

    /// The longest as the client saw it.
    pub fn longest_in_all(&self) -> f64 {
        quantile(&self.each(|wait| wait.took), 1.0)
    }

    /// The most that the server worked during one of them. Of a server that is hardly ever at
    /// rest it tells little: the system counts the time of one that runs a few ms at a time.
    pub fn most_work(&self) -> f64 {
        quantile(&self.each(|wait| wait.server.ran), 1.0)
    }

    /// What all of them took of a server that has nothing else to do, as far as these tell.
    pub fn work_at_rest(&self) -> f64 {
        quantile(&self.each(|wait| wait.server.ran), 0.25) * self.0.len() as f64
    }

    fn each(&self, what: impl Fn(&Wait) -> f64) -> Vec<f64> {
        self.0.iter().map(what).collect()
    }
}

/// A client that asks again and again whether the server is there.
pub struct Pinger {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Outcome<Waits>>,
}

impl Pinger {
    /// Asks at once when it has been answered, but no sooner than `every` after it asked
    /// last.
    pub fn start(server: &Server, every: Duration) -> Outcome<Self> {
        let mut connection = server.connect()?;
        let processor = server.processor()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut waits = Vec::new();
            let own = Processor::of_this_thread()?;
            while !stopped.load(Ordering::Relaxed) {
                let before = (processor.spent()?, own.spent()?);
                let began = Instant::now();
                connection.call(&["PING"])?;
                let took = began.elapsed();
                waits.push(Wait {
                    took: took.as_secs_f64() * 1e3,
                    server: processor.since(before.0)?,
                    client: own.since(before.1)?,
                });
                thread::sleep(every.saturating_sub(took));
            }
            Ok(Waits(waits))
        });
        Ok(Self { stop, thread })
    }

    /// Ends it; gives how long it waited.
    pub fn waits(self) -> Outcome<Waits> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the pinger failed")?
    }
}

/// How long a client waits that asks every ms from before `work` begins until it is done.
pub fn beside(server: &Server, work: impl FnOnce() -> Outcome<()>) -> Outcome<Waits> {
    let pinger = Pinger::start(server, EVERY)?;
    thread::sleep(Duration::from_millis(50));
    work()?;
    pinger.waits()
}

/// The columns of a table of comparisons.
pub const COLUMNS: [&str; 11] = [
    "PING every ms",
    "n",
    "p99.9 ms",
    "longest ms",
    "in all",
    "beside",
    "p99.9 ms",
    "longest ms",
    "in all",
    "target",
    "",
];

/// What they mean.
pub const NOTES: [&str; 5] = [
    "Round trips of a PING every ms from before it begins until nothing of it is left, and",
    "beside the like on a server without the module: medians of three turns of each one's p99.9",
    "and longest. In all: the longest as the client saw it. What the server and the client stood",
    "in line for a processor that others had is taken off the rest, and the target is for that: a",
    "server at work is put off its processor by a busy machine, one at rest is not.",
];

/// Waits beside some work of rlock's, and beside the like of it, turn by turn.
pub struct Comparison {
    name: String,
    size: usize,
    like: &'static str,
    /// A client is to wait no longer than so many ms beyond the like.
    most: f64,
    ours: Vec<Waits>,
    theirs: Vec<Waits>,
}

impl Comparison {
    /// Without any turns yet.
    pub fn new(name: impl Into<String>, size: usize, like: &'static str, most: f64) -> Self {
        Comparison {
            name: name.into(),
            size,
            like,
            most,
            ours: Vec::new(),
            theirs: Vec::new(),
        }
    }

    /// A turn beside rlock's work.
    pub fn ours(&mut self, waits: Waits) {
        self.ours.push(waits);
    }

    /// A turn beside the like.
    pub fn theirs(&mut self, waits: Waits) {
        self.theirs.push(waits);
    }

    /// Judges it and puts it into a table.
    pub fn print(&self, table: &mut Table, report: &mut Report) {
        let longest = middle(&self.ours, Waits::longest);
        let like_longest = middle(&self.theirs, Waits::longest);
        let most = ((like_longest + self.most) * 10.0).ceil() / 10.0;
        let what = format!("PING beside {}", self.name);
        let [target, verdict] = report.judge(&what, longest, Target::AtMost(most));
        table.row([
            self.name.clone(),
            grouped(self.size as f64),
            format!("{:.2}", middle(&self.ours, Waits::p999)),
            format!("{longest:.1}"),
            format!("{:.1}", middle(&self.ours, Waits::longest_in_all)),
            self.like.to_owned(),
            format!("{:.2}", middle(&self.theirs, Waits::p999)),
            format!("{like_longest:.1}"),
            format!("{:.1}", middle(&self.theirs, Waits::longest_in_all)),
            target,
            verdict,
        ]);
    }
}

/// The median of something over some turns.
pub fn middle(turns: &[Waits], of: impl Fn(&Waits) -> f64) -> f64 {
    median(&turns.iter().map(of).collect::<Vec<f64>>())
}
