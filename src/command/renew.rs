use std::ffi::CStr;

use super::args;
use crate::error::Error;
use crate::server::{Call, Command, Responder};

/// `RLOCK.RENEW key owner lease`
///
/// Sets the lease of the owner's holds to `lease` ms from now, shorter too, and
/// replies 1. An owner that does not hold the lock gets NOTHELD.
pub struct Renew;

impl Command for Renew {
    const NAME: &'static CStr = c"rlock.renew";
    const FLAGS: &'static CStr = c"write fast";
    const ACL: &'static CStr = c"write fast";
    const KEYED: bool = true;
    const USAGE: &'static str = "RLOCK.RENEW key owner lease";

    fn run(call: &Call<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let owner = args.owner()?;
        let lease = args.lease()?;
        if let Some((_, given)) = args.keyword() {
            return Err(args.syntax(given));
        }
        let owner = owner.id(call)?;
        let place = (call.db(), key);
        call.decide(false, |core, ks, now, out| {
            core.renew(ks, now, place, &owner, lease, out)
        })?;
        Ok(Responder::Integer(1))
    }
}
