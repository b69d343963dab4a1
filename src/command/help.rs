//! RLOCK.HELP: what commands there are.

use super::{args, SPECS};
use crate::error::Error;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec};

/// `RLOCK.HELP`
///
/// How each command is called and what it does, two lines for each, as `HELP` of the server's
/// own commands.
pub struct HelpCommand;

impl Command for HelpCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.help",
        flags: "allow-loading allow-stale",
        acl: "slow",
        keys: KeyArgs::None,
        summary: c"Lists the commands",
        complexity: c"O(1)",
        usage: "RLOCK.HELP",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        args::of::<Self>(call).end()?;
        let lines = SPECS.iter().flat_map(|spec| {
            let summary = [b"    ", spec.summary.to_bytes(), b"."].concat();
            [spec.usage.as_bytes().to_vec(), summary]
        });
        Ok(Responder::Array(lines.map(Responder::Text).collect()))
    }
}
