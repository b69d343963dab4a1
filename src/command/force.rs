//! RLOCK.FORCE: free a lock, whoever holds it.

use super::args;
use crate::error::Error;
use crate::lock;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.FORCE key [IFOWNER owner | IFTOKEN token]`
///
/// Frees the lock, whoever holds it, and grants it to the first waiter. Replies 1,
/// or 0 if it was free. With a condition only if that owner is among its holders, or
/// one of them holds it with that token; else replies 0 and changes nothing. For
/// operators: but for a watchdog hold, whose connection is closed, the former holder
/// does not learn of it before its next call, and two may believe they hold the lock
/// until then.
pub struct ForceCommand;

impl Command for ForceCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.force",
        flags: "write fast",
        acl: "write fast dangerous",
        keys: KeyArgs::One(Use::Write),
        summary: c"Frees a lock whoever holds it",
        complexity: c"O(N) with N the holders",
        usage: "RLOCK.FORCE key [IFOWNER owner | IFTOKEN token]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let aim = args.aim(call)?;
        let db = call.db();
        let freed = call.decide(|d| lock::force(d, db, key, call.client(), aim.as_ref()))?;
        Ok(Responder::Integer(i64::from(freed)))
    }
}
