//! RLOCK.RELEASE: end a hold.

use super::args::{self, PERMITS_BACK};
use crate::error::Error;
use crate::lock;
use crate::server::{Command, CommandCall, KeyArgs, Quick, Responder, Spec, Use};

/// `RLOCK.RELEASE key owner [READ|WRITE|PERMITS [k]] [ALL] [IFHELD | IFTOKEN token]`
///
/// Ends the owner's newest hold in this mode, or with `ALL` every one. Replies with
/// the number of holds that are left in it; when no owner has any left the lock is
/// free, and the first waiter has it in the same step. A writer that reads too and
/// releases `WRITE` reads on, and other readers may enter. The lease of an outer
/// hold stays as it is. With `PERMITS` it gives back `k` permits (1), or `ALL`, and
/// replies with how many it has left; to give back more than it has is NOTHELD. An owner
/// that does not hold the lock in this mode gets
/// NOTHELD, or 0 with `IFHELD`. With `IFTOKEN` it also gets 0, and nothing ends, if its
/// hold under way has another token: it is not the one that was to be released.
pub struct ReleaseCommand;

impl Command for ReleaseCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.release",
        flags: "write fast",
        acl: "write fast",
        keys: KeyArgs::One(Use::Write),
        summary: c"Ends a hold of a lock",
        complexity: c"O(log N) with N the holders and those who wait for it",
        usage: "RLOCK.RELEASE key owner [READ|WRITE|PERMITS [k]] [ALL] [IFHELD | IFTOKEN token]",
    };

    fn quick(call: &Quick<'_>) -> Option<i64> {
        let (key, owner) = args::of_held(call)?;
        call.release(key, owner)
    }

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let owner = args.owner()?;
        let options = args.options(&["READ", "WRITE", PERMITS_BACK, "ALL", "IFHELD", "IFTOKEN"])?;
        let id = owner.id(call)?;
        let ended = options.ended(call, &id)?;
        let left = call.put(false, |with| lock::release(with, key, &ended))?;
        Ok(Responder::Integer(left))
    }
}
