//! RLOCK.OWNER: the owner that stands for a connection.

use super::args;
use crate::error::Error;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec};

/// `RLOCK.OWNER`
///
/// The owner id that `*` stands for on this connection: `uuid:client id`, the uuid
/// made once when the module loads. An error in scripts and functions, where all
/// callers share one client.
pub struct OwnerCommand;

impl Command for OwnerCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.owner",
        flags: "fast",
        acl: "fast connection",
        keys: KeyArgs::None,
        summary: c"Returns this connection's owner id",
        complexity: c"O(1)",
        usage: "RLOCK.OWNER",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        args::of::<Self>(call).end()?;
        match call.own_id() {
            Some(id) => Ok(Responder::Text(id.into_bytes())),
            None => Err(Error::new(
                "RLOCK.OWNER gives a connection's owner id, and a script, a function or a module \
                 has no connection of its own",
            )),
        }
    }
}
