//! RLOCK.ACQUIRE: take a lock, or wait for it.

use super::args;
use crate::error::Error;
use crate::lock::{self, Mode};
use crate::server::{Call, Command, Keys, Responder, Spec, Use};

/// `RLOCK.ACQUIRE key owner lease [READ|WRITE] [BLOCK ms] [WATCHDOG] [ONCE]`
///
/// Acquires the lock for `lease` ms: for this owner alone, or with `READ` beside
/// other readers, or with `WRITE` alone on a lock that is read too. Replies with
/// the fencing token, or null when somebody else has the lock (and still has it
/// after `BLOCK` ms; 0 waits for ever). An owner that has it already acquires it
/// once more, at once, and gets the token of the hold under way; with `ONCE`, and
/// for the owner `*`, that is the error HELD. With `WATCHDOG` the server renews the
/// lease while this connection is open, and releases the hold when it closes. A
/// wait that would go round in a cycle is refused with DEADLOCK. In MULTI, in a
/// script or a function, BLOCK tries once.
pub struct Acquire;

impl Command for Acquire {
    const SPEC: Spec = Spec {
        name: c"rlock.acquire",
        flags: "write deny-oom fast",
        acl: c"write fast blocking",
        keys: Keys::One(Use::Write),
        summary: c"Acquires a lock, or waits for it",
        usage: "RLOCK.ACQUIRE key owner lease [READ|WRITE] [BLOCK ms] [WATCHDOG] [ONCE]",
    };

    fn run(call: &Call<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let key = args.next()?;
        let owner = args.owner()?;
        let lease = args.lease()?;
        let options = args.options(&["READ", "WRITE", "BLOCK", "WATCHDOG", "ONCE"])?;
        let id = owner.id(call)?;
        if options.mode() == Mode::Read {
            call.lease_key_fits(key, &id)?;
        }
        let ask = options.ask(call, &owner, &id, lease)?;
        call.request(&[key], &ask, |d| lock::acquire(d, key, &ask))
    }
}
