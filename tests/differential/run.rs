//! Many sequences of random steps; one that makes the servers differ is told in as
//! few steps as do it.

use std::env;
use std::time::{Duration, Instant};

use super::generate::sequence;
use super::pair::{Difference, Pair, Setting};
use super::side::Language;
use super::step::Step;

/// How many times as far it goes to meet with what is rare.
const FURTHER: usize = 10;

/// For how long a failing sequence is made shorter.
const PATIENCE: Duration = Duration::from_secs(40);

/// Where to begin, and how far to go.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    pub seed: u64,
    pub steps: usize,
}

impl Length {
    /// What RLOCK_DIFF_SEED and RLOCK_DIFF_STEPS say, or else this.
    pub fn given(seed: u64, steps: usize) -> Self {
        let number = |name: &str| {
            let text = env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
        };
        Self {
            seed: number("RLOCK_DIFF_SEED").unwrap_or(seed),
            steps: number("RLOCK_DIFF_STEPS").map_or(steps, |steps| steps as usize),
        }
    }
}

/// Runs sequences until that many steps were taken and the servers said all of this, or
/// else did not for ten times as long; panics with what they never said, and with the
/// shortest sequence found when they differ.
pub fn agree(languages: [Language; 2], length: Length, say: &[&str]) {
    let mut pair = Pair::start(languages);
    let mut taken = 0;
    let mut seed = length.seed;
    let begin = Instant::now();
    let missing = |pair: &Pair| say.iter().find(|what| !pair.met.contains_key(**what));
    let furthest = length.steps.saturating_mul(FURTHER);
    // What a step meets with hangs on when the leases end, so how often it does varies.
    while taken < length.steps || (taken < furthest && missing(&pair).is_some()) {
        let (setting, steps) = sequence(seed);
        if let Err(difference) = pair.run(setting, &steps) {
            let told = tell(&mut pair, setting, steps, difference);
            panic!(
                "{languages:?} differ; again with RLOCK_DIFF_SEED={seed} RLOCK_DIFF_STEPS=1, \
                 {setting:?}\n{told}"
            );
        }
        taken += steps.len();
        seed += 1;
    }
    println!(
        "{languages:?}: {taken} steps in {} sequences from seed {} on are equal, after {} of them \
         dead readers were left on one server; {:.1} s",
        seed - length.seed,
        length.seed,
        pair.left_overs,
        begin.elapsed().as_secs_f64()
    );
    for (what, times) in &pair.met {
        println!("  {times:8} {what}");
    }
    pair.alive();
    assert_eq!(missing(&pair), None, "was never said");
}

/// What makes two servers differ that are to take these steps; none if nothing does.
pub fn differ(languages: [Language; 2], steps: &[Step]) -> Option<Difference> {
    let setting = Setting {
        resp3: false,
        server_expires: true,
    };
    Pair::start(languages).run(setting, steps).err()
}

/// The shortest sequence found, and what it does.
fn tell(
    pair: &mut Pair,
    setting: Setting,
    mut steps: Vec<Step>,
    mut difference: Difference,
) -> String {
    let whole = steps.len();
    steps.truncate(difference.at + 1);
    let end = Instant::now() + PATIENCE;
    let mut chunk = steps.len() / 2;
    while chunk > 0 && Instant::now() < end {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + chunk).min(steps.len()));
            match pair.run(setting, &fewer) {
                Err(found) => {
                    fewer.truncate(found.at + 1);
                    steps = fewer;
                    difference = found;
                }
                Ok(()) => at += chunk,
            }
        }
        chunk /= 2;
    }
    let lines: Vec<String> = steps.iter().map(|step| format!("  {step}")).collect();
    format!(
        "{} steps of {whole} are enough:\n{}\n{}",
        steps.len(),
        lines.join("\n"),
        difference.what
    )
}
