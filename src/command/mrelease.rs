//! RLOCK.MRELEASE: release several locks.

use super::args;
use crate::error::Error;
use crate::lock::{self, Outcome};
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.MRELEASE numkeys key [key ...] owner`
///
/// Ends the owner's newest plain hold on each of the keys where it has one. Replies
/// with the number of these keys; 0 is no error.
pub struct MreleaseCommand;

impl Command for MreleaseCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.mrelease",
        flags: "write",
        acl: "write slow",
        keys: KeyArgs::Counted(Use::Write),
        summary: c"Ends a hold of each of several locks",
        complexity: c"O(K log N) with K the keys and N those who wait for them",
        usage: "RLOCK.MRELEASE numkeys key [key ...] owner",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let keys = args.keys()?;
        let owner = args.owner()?;
        let options = args.options(&[])?;
        let id = owner.id(call)?;
        let ended = options.ended(call, &id)?;
        let released = call.decide(|d| lock::release_many(d, &keys, &ended))?;
        Ok(call.after_long_work(&keys, Outcome::Done(released), None))
    }
}
