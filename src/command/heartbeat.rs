//! RLOCK.HEARTBEAT: this connection's program is alive.

use super::args;
use crate::error::Error;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec};

/// `RLOCK.HEARTBEAT patience`
///
/// The program behind this connection was alive when it sent this, and may be silent for so many
/// ms. From the first one on a connection that is silent for longer loses the holds that its
/// watchdog keeps, as far as somebody waits for them. Not a write command: it works while writes
/// are paused or refused.
pub struct HeartbeatCommand;

impl Command for HeartbeatCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.heartbeat",
        flags: "fast",
        acl: "write fast connection",
        keys: KeyArgs::None,
        summary: c"Says that the program behind this connection is alive, and for how long it may be silent",
        complexity: c"O(log N) with N the connections that send it",
        usage: "RLOCK.HEARTBEAT patience",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let patience = args.patience()?;
        args.end()?;
        call.heartbeat(patience)?;
        Ok(Responder::Status(c"OK"))
    }
}
