//! RLOCK.MRENEW: renew the leases of several locks.

use super::args;
use crate::error::Error;
use crate::lock::{self, Outcome};
use crate::server::{Call, Command, Keys, Responder, Spec, Use};

/// `RLOCK.MRENEW numkeys key [key ...] owner lease`
///
/// Sets the owner's lease on each of the keys to `lease` ms from now, shorter too,
/// and replies 1. If it does not hold one of them it gets NOTHELD, and none is
/// renewed.
pub struct Mrenew;

impl Command for Mrenew {
    const SPEC: Spec = Spec {
        name: c"rlock.mrenew",
        flags: "write",
        acl: c"write slow",
        keys: Keys::Counted(Use::Write),
        summary: c"Sets the lease of several locks",
        usage: "RLOCK.MRENEW numkeys key [key ...] owner lease",
    };

    fn run(call: &Call<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let keys = args.keys()?;
        let owner = args.owner()?;
        let lease = args.lease()?;
        let options = args.options(&[])?;
        let id = owner.id(call)?;
        let renewal = options.renewal(call, &id, lease)?;
        call.decide(|d| lock::renew_many(d, &keys, &renewal))?;
        Ok(call.after_long_work(&keys, Outcome::Done(1), None))
    }
}
