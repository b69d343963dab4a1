//! RLOCK.LIMIT: change how many permits of a lock there are.

use super::args;
use crate::error::Error;
use crate::lock;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.LIMIT key n`
///
/// At most `n` permits of the lock are out from now on, 1 to 1,000,000, until nobody holds
/// any; requests go on naming the limit that they named before. Replies the limit that was in
/// force. With more permits waiters are let in at once. With fewer nothing is taken from
/// anybody, nobody is granted any before enough came back, and who waits for more than `n`
/// gets WRONGLIMIT. A lock of which nobody holds permits is the error NOTHELD, one that is
/// held in another mode WRONGMODE. For operators.
pub struct LimitCommand;

impl Command for LimitCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.limit",
        flags: "write fast",
        acl: "write fast dangerous",
        keys: KeyArgs::One(Use::Write),
        summary: c"Changes how many permits of a lock there are",
        complexity: c"O(log N) with N those who wait for it, for each who is granted",
        usage: "RLOCK.LIMIT key n",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let limit = args.limit()?;
        args.end()?;
        let db = call.db();
        let was = call.decide(|d| lock::limit(d, db, key, limit))?;
        Ok(Responder::Integer(was))
    }
}
