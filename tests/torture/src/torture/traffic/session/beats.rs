//! That the program of a session is alive, as it says itself (HEARTBEAT), and times in which it is
//! not, or is silent though it is.

use fastrand::Rng;
use rlock_torture::clock::now_us;

/// So often in its patience it says so.
const PART: u64 = 3;
const PATIENCES_MS: [u64; 5] = [300, 400, 700, 1200, 2000];

/// What does not go on for a while. What comes meanwhile is recorded with its time, as a kernel
/// would keep it, and the program learns of it later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// All of it: it sends nothing and looks at nothing.
    Process,
    /// The program is busy, and another part of it says that it lives.
    Program,
    /// It works on, and does not say so.
    Heartbeats,
}

pub struct Beats {
    /// ms; none: it never says it.
    patience: Option<u64>,
    stopped: Option<(Stopped, u64)>,
}

impl Beats {
    pub fn new(rng: &mut Rng) -> Self {
        let says = rng.u32(0..5) > 0;
        let patience = says.then(|| draw(rng));
        Self {
            patience,
            stopped: None,
        }
    }

    /// Now and then something stops, for less than its patience or for more; sooner where it keeps
    /// what others wait for.
    pub fn upset(&mut self, rng: &mut Rng, keeps: bool) {
        let now = now_us();
        self.stopped = self.stopped.filter(|(_, until)| *until > now);
        let one_in = if keeps { 150 } else { 1500 };
        if self.stopped.is_some() || rng.u32(0..one_in) > 0 {
            return;
        }
        let patience = self.patience.unwrap_or(1000);
        let ms = match rng.u32(0..3) {
            0 => rng.u64(0..patience * 6 / 10),
            _ => patience + rng.u64(200..2500),
        };
        let what = match rng.u32(0..5) {
            0 => Stopped::Program,
            1 => Stopped::Heartbeats,
            _ => Stopped::Process,
        };
        self.stopped = Some((what, now + ms * 1000));
    }

    pub fn wake(&mut self) {
        self.stopped = None;
    }

    fn stopped(&self) -> Option<Stopped> {
        let (what, until) = self.stopped?;
        (until > now_us()).then_some(what)
    }

    /// Whether the program looks at what has come, and asks for more.
    pub fn works(&self) -> bool {
        self.stopped()
            .is_none_or(|what| what == Stopped::Heartbeats)
    }

    /// The patience that is to be said now, and when the next heartbeat is due, if it says it.
    pub fn says(&mut self, rng: &mut Rng) -> Option<(u64, u64)> {
        let speaks = self.stopped().is_none_or(|what| what == Stopped::Program);
        let patience = self.patience.filter(|_| speaks)?;
        if rng.u32(0..30) == 0 {
            self.patience = Some(draw(rng));
        }
        Some((patience, now_us() + patience * 1000 / PART))
    }
}

fn draw(rng: &mut Rng) -> u64 {
    rng.choice(PATIENCES_MS).unwrap_or(PATIENCES_MS[0])
}
