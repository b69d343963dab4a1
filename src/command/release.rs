use std::ffi::CStr;

use super::args;
use crate::error::Error;
use crate::server::{Call, Command, Responder};

/// `RLOCK.RELEASE key owner [ALL]`
///
/// Ends the owner's newest hold, or with `ALL` every one. Replies with the number
/// of holds that are left; at 0 the lock is free, and the first waiter has it in
/// the same step. The lease of an outer hold stays as it is. An owner that does
/// not hold the lock gets NOTHELD.
pub struct Release;

impl Command for Release {
    const NAME: &'static CStr = c"rlock.release";
    const FLAGS: &'static CStr = c"write fast";
    const ACL: &'static CStr = c"write fast";
    const KEYED: bool = true;
    const USAGE: &'static str = "RLOCK.RELEASE key owner [ALL]";

    fn run(call: &Call<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let owner = args.owner()?;
        let mut all = false;
        while let Some((word, given)) = args.keyword() {
            match word.as_slice() {
                b"ALL" if !all => all = true,
                _ => return Err(args.syntax(given)),
            }
        }
        let owner = owner.id(call)?;
        let place = (call.db(), key);
        let left = call.decide(false, |core, ks, now, out| {
            core.release(ks, now, place, &owner, all, out)
        })?;
        Ok(Responder::Integer(left))
    }
}
