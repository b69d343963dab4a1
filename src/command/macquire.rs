//! RLOCK.MACQUIRE: take several locks at once, or wait for all of them.

use super::args;
use crate::error::Error;
use crate::lock;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.MACQUIRE numkeys key [key ...] owner lease [BLOCK ms|QUEUE ms] [NOTIFY channel tag] [WATCHDOG] [ONCE]`
///
/// As ACQUIRE, for 1 to 1,024 plain locks at once: all of them or none, one token
/// for all. A request that waits holds nothing. It stands in the queue of every key
/// and has them all when on each it is first and the key is free, or its owner
/// holds it already. A key whose first waiter waits for other keys too stays free
/// for it: it is reserved. In a cluster all keys must lie in one slot.
pub struct MacquireCommand;

impl Command for MacquireCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.macquire",
        flags: "write deny-oom",
        acl: "write slow blocking",
        keys: KeyArgs::Counted(Use::Write),
        summary: c"Acquires several locks at once, or waits for them",
        complexity: c"O(K log N) with K the keys and N those who wait for them",
        usage: "RLOCK.MACQUIRE numkeys key [key ...] owner lease [BLOCK ms|QUEUE ms] [NOTIFY channel tag] [WATCHDOG] [ONCE]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let keys = args.keys()?;
        let owner = args.owner()?;
        let lease = args.lease()?;
        let options = args.options(&["BLOCK", "QUEUE", "NOTIFY", "WATCHDOG", "ONCE"])?;
        let id = owner.id(call)?;
        let address = options.address(call)?;
        let ask = options.ask(call, &owner, &id, lease, address.as_ref())?;
        call.request(&keys, &ask, |with| {
            with.request(|d| lock::acquire_many(d, &keys, &ask))
        })
    }
}
