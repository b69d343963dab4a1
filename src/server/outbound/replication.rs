//! What replicas and the AOF get: plain commands with absolute times, so that
//! nobody decides anything anew and a server without the module understands them.

use std::ffi::CStr;

use super::records;
use crate::lock::WallMs;
use crate::server::keys::slots;
use crate::server::state::{Server, Situation};
use crate::server::sys::{count_a_write, is_missing, replicate, Ctx, Selected, Text, To};

/// The commands that writes are replicated as, and the one that the gate asks by. A
/// server on which one of them was renamed away would lose writes, or grant where it must
/// not, silently; so rlock does not load there.
const COMMANDS: [&CStr; 8] = [
    c"HSET",
    c"HINCRBY",
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
    /// We, of our own accord: no client's command could stand for it.
    Ourselves,
}

/// The way to the replicas and the AOF. Each function here: `None` if the server did not
/// take it.
pub struct Replication<'a> {
    ctx: Ctx<'a>,
    server: &'a Server,
    situation: &'a Situation,
    by: By,
}

impl<'a> Replication<'a> {
    pub fn new(ctx: Ctx<'a>, server: &'a Server, situation: &'a Situation, by: By) -> Self {
        Self {
            ctx,
            server,
            situation,
            by,
        }
    }

    fn send<const N: usize>(&self, db: i32, command: &CStr, args: [&Text<'_>; N]) -> Option<()> {
        if !self.is_needed() {
            return count_a_write(self.ctx);
        }
        let _db = Selected::new(self.ctx, db);
        replicate(self.ctx, command, To::Everybody, args)
    }

    /// Whether anybody would get it: if not, the rest need not be made into strings.
    fn is_needed(&self) -> bool {
        self.by == By::Ourselves || records::are_kept(self.ctx, self.server, self.situation)
    }

    pub fn hset(&self, db: i32, name: &Text<'_>, field: &Text<'_>, value: &Text<'_>) -> Option<()> {
        self.send(db, c"HSET", [name, field, value])
    }

    pub fn hincrby(&self, db: i32, name: &Text<'_>, field: &Text<'_>, by: i64) -> Option<()> {
        if !self.is_needed() {
            return count_a_write(self.ctx);
        }
        self.send(db, c"HINCRBY", [name, field, &Text::number(by)?])
    }

    pub fn hdel(&self, db: i32, name: &Text<'_>, field: &Text<'_>) -> Option<()> {
        self.send(db, c"HDEL", [name, field])
    }

    /// SET name value, with PXAT if it ends at some time.
    pub fn set(
        &self,
        db: i32,
        name: &Text<'_>,
        value: &Text<'_>,
        at: Option<WallMs>,
    ) -> Option<()> {
        let Some(at) = at.filter(|_| self.is_needed()) else {
            return self.send(db, c"SET", [name, value]);
        };
        let (pxat, at) = (Text::new(b"PXAT")?, Text::number(at.0)?);
        self.send(db, c"SET", [name, value, &pxat, &at])
    }

    pub fn pexpireat(&self, db: i32, name: &Text<'_>, at: WallMs) -> Option<()> {
        if !self.is_needed() {
            return count_a_write(self.ctx);
        }
        self.send(db, c"PEXPIREAT", [name, &Text::number(at.0)?])
    }

    pub fn del(&self, db: i32, name: &Text<'_>) -> Option<()> {
        self.send(db, c"DEL", [name])
    }

    /// To replicas only, for their subscribers.
    pub fn publish(&self, channel: &Text<'_>, message: &Text<'_>) -> Option<()> {
        if !self.is_needed() {
            return count_a_write(self.ctx);
        }
        replicate(self.ctx, c"PUBLISH", To::Replicas, [channel, message])
    }
}

/// Asks the replicas to acknowledge what they have, as WAIT does.
pub fn ask_for_ack(ctx: Ctx<'_>) -> Option<()> {
    let (getack, all) = (Text::new(b"GETACK")?, Text::new(b"*")?);
    replicate(ctx, c"REPLCONF", To::Replicas, [&getack, &all])
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
