//! RLOCK.MRENEW: renew the leases of several locks.

use super::args;
use crate::error::Error;
use crate::lock::{self, Outcome};
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.MRENEW numkeys key [key ...] owner lease [NOTIFY channel tag]`
///
/// Sets the owner's lease on each of the keys to `lease` ms from now, shorter too,
/// and replies 1. If it does not hold one of them it gets NOTHELD, and none is
/// renewed. With `NOTIFY` a message announces the loss of its plain holds from now on, as for
/// RENEW.
pub struct MrenewCommand;

impl Command for MrenewCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.mrenew",
        flags: "write",
        acl: "write slow",
        keys: KeyArgs::Counted(Use::Write),
        summary: c"Sets the lease of several locks",
        complexity: c"O(K) with K the keys",
        usage: "RLOCK.MRENEW numkeys key [key ...] owner lease [NOTIFY channel tag]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let keys = args.keys()?;
        let owner = args.owner()?;
        let lease = args.lease()?;
        let options = args.options(&["NOTIFY"])?;
        let id = owner.id(call)?;
        let address = options.address(call)?;
        let renewal = options.renewal(call, &id, lease, address.as_ref())?;
        call.renew(&renewal, |d| lock::renew_many(d, &keys, &renewal))?;
        Ok(call.after_long_work(&keys, Outcome::Done(1), None))
    }
}
