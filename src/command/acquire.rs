//! RLOCK.ACQUIRE: take a lock, or wait for it.

use super::args::{self, PERMITS_WANTED};
use crate::error::Error;
use crate::lock::{self, Mode};
use crate::server::{Command, CommandCall, KeyArgs, Quick, Responder, Spec, Use};

/// `RLOCK.ACQUIRE key owner lease [READ|WRITE|LIMIT n] [PERMITS k] [BLOCK ms|QUEUE ms] [NOTIFY channel tag] [WANTED] [WATCHDOG] [ONCE]`
///
/// Acquires the lock for `lease` ms: for this owner alone, or with `READ` together with
/// other readers, or with `WRITE` alone on a lock that is read too. With `LIMIT` n at
/// most n permits of it are out at a time, and the owner takes `k` of them (1), all or none;
/// while anybody holds some, another limit is the error WRONGLIMIT. Replies with
/// the fencing token, or null when somebody else has the lock (and still has it
/// after `BLOCK` ms; 0 waits for ever). With `QUEUE` ms the connection goes on: the
/// reply is `QUEUED`, and how the wait ended is published on `channel` with `tag`,
/// the caller's name for this request. `NOTIFY` also sends a message there if the hold is lost.
/// It takes a RESP3 connection that is subscribed to the channel. With `WANTED` a message there says
/// too that somebody waits whom the hold keeps out. An owner that has
/// the lock already acquires it once more, at once, and gets the token of the hold
/// under way. With `ONCE` it gets that too, without a hold more, and its request that
/// waits gives its place to this one; for the owner `*` it is the error HELD. With
/// `WATCHDOG` the server renews the lease while this connection is open, and releases
/// the hold when it closes. A wait that would go round in a cycle is refused with
/// DEADLOCK. In MULTI, in a script or a function, BLOCK and QUEUE try once.
pub struct AcquireCommand;

impl Command for AcquireCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.acquire",
        flags: "write deny-oom fast",
        acl: "write fast blocking",
        keys: KeyArgs::One(Use::Write),
        summary: c"Acquires a lock, or waits for it",
        complexity: c"O(1) for a free lock or one with a single holder, else O(log N) with N the holders and those who wait",
        usage: "RLOCK.ACQUIRE key owner lease [READ|WRITE|LIMIT n] [PERMITS k] [BLOCK ms|QUEUE ms] [NOTIFY channel tag] [WANTED] [WATCHDOG] [ONCE]",
    };

    fn quick(call: &Quick<'_>) -> Option<i64> {
        let (key, owner, lease) = args::of_free(call)?;
        call.acquire(key, owner, lease)
    }

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let owner = args.owner()?;
        let lease = args.lease()?;
        let options = args.options(&[
            "READ",
            "WRITE",
            "LIMIT",
            PERMITS_WANTED,
            "BLOCK",
            "QUEUE",
            "NOTIFY",
            "WANTED",
            "WATCHDOG",
            "ONCE",
        ])?;
        let id = owner.id(call)?;
        if options.mode() == Mode::Read {
            call.lease_key_fits(key, &id)?;
        }
        let address = options.address(call)?;
        let ask = options.ask(call, &owner, &id, lease, address.as_ref())?;
        call.request(&[key], &ask, |with| lock::acquire(with, key, &ask))
    }
}
