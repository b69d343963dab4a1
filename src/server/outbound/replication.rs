//! What replicas and the AOF get: plain commands with absolute times, so that
//! nobody decides anything anew and a server without the module understands them.

use std::ffi::CStr;

use super::payload::hash_of_one;
use super::records;
use crate::lock::WallMs;
use crate::server::keys::slots;
use crate::server::shell::ServerShell;
use crate::server::sys::{count_a_write, is_missing, replicate, Ctx, Text, To};

/// The commands that writes are replicated as, and the one that the gate asks by. A
/// server on which one of them was renamed away would lose writes, or grant where it must
/// not, silently; so rlock does not load there.
const COMMANDS: [&CStr; 8] = [
    c"RESTORE",
    c"HSET",
    c"HDEL",
    c"SET",
    c"PEXPIREAT",
    c"DEL",
    c"PUBLISH",
    c"SETRANGE",
];

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A command of ours.
    Command,
    /// We ourselves: no client's command could stand for it.
    Ourselves,
}

/// Who acts, and so how what is done goes to the replicas and the AOF.
#[derive(Clone, Copy)]
pub struct Replication<'a> {
    pub shell: &'a ServerShell,
    pub ctx: Ctx<'a>,
    pub by: By,
}

impl Replication<'_> {
    /// Sends a command, with a number behind its other arguments if one is given, in the
    /// database that is selected. Where nobody would get it the number is not even made
    /// into a string. `None`: the server did not take it.
    pub fn send<const N: usize>(
        &self,
        to: To,
        command: &CStr,
        args: [&Text<'_>; N],
        number: Option<i64>,
    ) -> Option<()> {
        if self.is_kept() {
            return replicate(self.ctx, command, to, args, number);
        }
        count_a_write(self.ctx);
        Some(())
    }

    /// Sends that the key is a hash with this field alone, and ends then: one command costs half of
    /// what HSET, HDEL and PEXPIREAT in their transaction do.
    pub fn send_hash(
        &self,
        key: &Text<'_>,
        field: &Text<'_>,
        value: &Text<'_>,
        at: WallMs,
    ) -> Option<()> {
        if !self.is_kept() {
            count_a_write(self.ctx);
            return Some(());
        }
        let payload = Text::new(&hash_of_one(field.bytes(), value.bytes()))?;
        let at = Text::number(at.0)?;
        let server = &self.shell.server;
        let args = [key, &at, &payload, &server.replace, &server.absttl];
        replicate(self.ctx, c"RESTORE", To::Everybody, args, None)
    }

    /// Whether anybody gets what is sent.
    fn is_kept(&self) -> bool {
        self.by == By::Ourselves || records::are_kept(self.shell, self.ctx)
    }
}

/// Asks the replicas to acknowledge what they have, as WAIT does.
pub fn ask_for_ack(ctx: Ctx<'_>) -> Option<()> {
    let (getack, all) = (Text::new(b"GETACK")?, Text::new(b"*")?);
    replicate(ctx, c"REPLCONF", To::Replicas, [&getack, &all], None)
}

/// The first of [`COMMANDS`] that this server does not know, in a cluster also of those
/// that it is asked for its slots by.
pub fn missing_command(ctx: Ctx<'_>, cluster: bool) -> Option<&'static CStr> {
    let of_slots = slots::COMMANDS.into_iter().filter(|_| cluster);
    COMMANDS
        .into_iter()
        .chain(of_slots)
        .find(|command| is_missing(ctx, command))
}
