//! What the judge says of the holds of one round, for the sum of all rounds.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// Those under which nothing is excused, if the round had them.
    pub settings: Option<String>,
    pub holds: usize,
    /// Held by others at once: these are findings.
    pub twice: usize,
    /// And these not, by the fault that excuses them.
    pub excused: BTreeMap<String, usize>,
}

impl Verdict {
    pub fn write(&self, history: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        fs::write(history.with_file_name("verdict.json"), text)
    }

    pub fn read(dir: &Path) -> io::Result<Self> {
        let text = fs::read(dir.join("verdict.json"))?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// All rounds of a run, by their settings.
#[derive(Default)]
pub struct Sum {
    rounds: BTreeMap<Option<String>, (usize, Verdict)>,
}

impl Sum {
    pub fn add(&mut self, verdict: Verdict) {
        let (rounds, sum) = self.rounds.entry(verdict.settings.clone()).or_default();
        *rounds += 1;
        sum.holds += verdict.holds;
        sum.twice += verdict.twice;
        for (kind, count) in verdict.excused {
            *sum.excused.entry(kind).or_default() += count;
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "in all, holds that others had at once:")?;
        for (settings, (rounds, sum)) in &self.rounds {
            let name = settings.as_deref().unwrap_or("other settings");
            write!(f, "  {name}: {rounds} rounds, {} holds, ", sum.holds)?;
            write!(f, "{} found", sum.twice)?;
            match settings {
                Some(_) => writeln!(f, ", none is excused")?,
                None => {
                    let all = sum.excused.iter();
                    let all: Vec<String> = all.map(|(kind, n)| format!("{kind} {n}")).collect();
                    let count: usize = sum.excused.values().sum();
                    writeln!(f, ", {count} excused by faults: {}", all.join(", "))?;
                }
            }
        }
        Ok(())
    }
}
