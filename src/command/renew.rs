//! RLOCK.RENEW: renew a lease.

use super::args::{self, PERMITS};
use crate::error::Error;
use crate::lock;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.RENEW key owner lease [READ|WRITE|PERMITS] [NOTIFY channel tag] [WANTED] [WATCHDOG] [FENCE token|TOKEN]`
///
/// Sets the lease of the owner's holds to `lease` ms from now, shorter too, and
/// replies 1. If a watchdog renews it, that is its lease from now on. With
/// `WATCHDOG` all of the owner's holds on the key belong to this connection from
/// now on: after a reconnect, a failover, or for a hold that somebody else took. With
/// `NOTIFY` a message there announces the loss of its holds in this mode from now on, and whoever
/// was to be notified before gets `rebound`; with `WANTED` also that somebody waits whom they keep
/// out. With `FENCE` it sets the lock's fencing counter to
/// the greatest of itself, the last token that the owner got for it and `token`, and
/// replies with that: every token that is given for the lock from now on is greater. The
/// counter lives for 30 days more, unless it had no TTL. With `TOKEN` the hold has a new
/// fencing token from now on, which is the reply: as if it had begun now. Of an owner with more than
/// one hold there that is refused with HELD. An owner that does not hold the lock in this mode
/// gets NOTHELD.
pub struct RenewCommand;

impl Command for RenewCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.renew",
        flags: "write fast",
        acl: "write fast",
        keys: KeyArgs::One(Use::Write),
        summary: c"Sets the lease of a lock",
        complexity: c"O(log N) with N the holders",
        usage: "RLOCK.RENEW key owner lease [READ|WRITE|PERMITS] [NOTIFY channel tag] [WANTED] [WATCHDOG] [FENCE token|TOKEN]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let owner = args.owner()?;
        let lease = args.lease()?;
        let options = args.options(&[
            "READ", "WRITE", PERMITS, "NOTIFY", "WANTED", "WATCHDOG", "FENCE", "TOKEN",
        ])?;
        let id = owner.id(call)?;
        let address = options.address(call)?;
        let renewal = options.renewal(call, &id, lease, address.as_ref())?;
        let token = call.renew(&renewal, |d| lock::renew(d, key, &renewal))?;
        Ok(Responder::Integer(token.map_or(1, |token| token.0)))
    }
}
