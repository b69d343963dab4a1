//! RLOCK.CANCEL: call off a wait.

use super::args::{self, PERMITS};
use crate::error::Error;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.CANCEL key owner [READ|WRITE|PERMITS]`
///
/// Ends the waits of this owner for the key, in this mode or in any, from whichever
/// connection: as after their time, with null or `timeout`. A request for several keys
/// ends whole. Replies how many. What was granted before stands. Not a write command:
/// it works while writes are paused or refused.
pub struct CancelCommand;

impl Command for CancelCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.cancel",
        flags: "fast",
        acl: "write fast",
        keys: KeyArgs::One(Use::Write),
        summary: c"Ends an owner's waits for a lock",
        complexity: c"O(log N) with N those who wait for it, for each wait that ends",
        usage: "RLOCK.CANCEL key owner [READ|WRITE|PERMITS]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let owner = args.owner()?;
        let options = args.options(&["READ", "WRITE", PERMITS])?;
        let id = owner.id(call)?;
        call.cancel(key, &id, options.mode).map(Responder::Integer)
    }
}
