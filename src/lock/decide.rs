//! The ways into the core: each request, and each piece of what is due, is one decision.

use super::kind::all::KINDS;
use super::waiting::drain;
use super::{leaving, wanted};
use super::{Core, Decision, Keyspace, Notices, Now, Outcome, Refusal, Verdict};

/// Makes decisions, one after the other: on the core and the keyspace, at a reading of
/// the clocks. What others are to be told is left in `out`.
pub struct Decider<'a> {
    pub core: &'a mut Core,
    pub ks: &'a mut dyn Keyspace,
    pub now: Now,
    pub out: &'a mut Notices,
}

impl Decider<'_> {
    fn begin(&mut self) -> Decision<'_> {
        leaving::let_all_leave(self.core, self.now);
        self.core.inquiry.steps.begin();
        Decision::new(&KINDS, self.core, self.ks, self.now, self.out)
    }

    fn drained<T>(&mut self, run: impl FnOnce(&mut Decision<'_>) -> T) -> (T, Option<Outcome>) {
        let mut d = self.begin();
        let result = run(&mut d);
        drain(&mut d);
        wanted::look(d.core, d.out, d.now);
        (result, d.end())
    }

    /// Makes a decision: looks at the keyspace, writes to it, and hands on what has
    /// become free.
    pub fn decide<T>(&mut self, run: impl FnOnce(&mut Decision<'_>) -> T) -> T {
        self.drained(run).0
    }

    /// The same for a request that may have to wait.
    pub fn request(
        &mut self,
        run: impl FnOnce(&mut Decision<'_>) -> Result<Verdict, Refusal>,
    ) -> Result<Verdict, Refusal> {
        match self.drained(run) {
            (verdict, None) => verdict,
            (_, Some(Outcome::Granted(token))) => Ok(Verdict::Granted(token)),
            (_, Some(Outcome::Refused(refusal))) => Err(refusal),
            (_, Some(_)) => Ok(Verdict::Refused),
        }
    }

    /// Takes in what has happened, and hands nothing on yet: that is due from then on.
    pub fn note<T>(&mut self, run: impl FnOnce(&mut Decision<'_>) -> T) -> T {
        let mut d = self.begin();
        let result = run(&mut d);
        d.end();
        result
    }
}
