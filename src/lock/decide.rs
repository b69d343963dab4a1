//! The ways into the core: each request, and each piece of what is due, is one decision.

use super::waiting::drain;
use super::{Core, Decision, Keyspace, Notices, Now, Outcome, Refusal, Verdict};

/// Makes a decision: looks at the keyspace, writes to it, hands on what has become
/// free, and leaves in `out` what others are to be told.
pub fn decide<T>(
    core: &mut Core,
    ks: &mut dyn Keyspace,
    now: Now,
    out: &mut Notices,
    run: impl FnOnce(&mut Decision<'_>) -> T,
) -> T {
    let mut d = Decision::new(core, ks, now, out);
    let result = run(&mut d);
    drain(&mut d);
    d.end();
    result
}

/// The same for a request that may have to wait.
pub fn request(
    core: &mut Core,
    ks: &mut dyn Keyspace,
    now: Now,
    out: &mut Notices,
    run: impl FnOnce(&mut Decision<'_>) -> Result<Verdict, Refusal>,
) -> Result<Verdict, Refusal> {
    let mut d = Decision::new(core, ks, now, out);
    let verdict = run(&mut d);
    drain(&mut d);
    match d.end() {
        None => verdict,
        Some(Outcome::Granted(token)) => Ok(Verdict::Granted(token)),
        Some(Outcome::Refused(refusal)) => Err(refusal),
        Some(_) => Ok(Verdict::Refused),
    }
}

/// Takes in what has happened, and hands nothing on yet: that is due from then on.
pub fn note<T>(
    core: &mut Core,
    ks: &mut dyn Keyspace,
    now: Now,
    out: &mut Notices,
    run: impl FnOnce(&mut Decision<'_>) -> T,
) -> T {
    let mut d = Decision::new(core, ks, now, out);
    let result = run(&mut d);
    d.end();
    result
}
