use std::ffi::CStr;

use super::args;
use crate::error::Error;
use crate::lock::{Core, Holder, Key, Keyspace, Kind, Mode, Now, Refusal};
use crate::server::{Call, Command, Responder};

/// `RLOCK.INFO key`
///
/// A map that describes a lock, also a free one: `mode` (`free`, `exclusive`,
/// `read`, `write`), `holders` (each a map of `owner`, `mode`, `holds`,
/// `remaining-ms`, `held-ms` and `token`; null where there is no lease, or where
/// this server does not know), `waiters`, and `oldest-wait-ms` (null when nobody
/// waits). A key that is no lock is the error WRONGTYPE. Changes nothing.
pub struct Info;

impl Command for Info {
    const NAME: &'static CStr = c"rlock.info";
    const FLAGS: &'static CStr = c"readonly fast";
    const ACL: &'static CStr = c"read fast";
    const KEYED: bool = true;
    const USAGE: &'static str = "RLOCK.INFO key";

    fn run(call: &Call<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let name = args.next()?;
        args.end()?;
        let key = Key::new(call.db(), name);
        call.inspect(|core, ks, now| describe(core, ks, now, key))?
    }
}

fn describe<K: Keyspace>(core: &Core, ks: &mut K, now: Now, key: Key) -> Result<Responder, Error> {
    let look = ks.look(&key, &[]);
    let mode = match look.kind {
        Kind::Foreign(why) => return Err(Refusal::NotALock { key, why }.into()),
        Kind::Free => "free",
        Kind::Plain => name(Mode::Exclusive),
        Kind::ReadWrite(mode) => name(mode),
    };
    let remaining = look
        .expires
        .map(|at| at.saturating_sub(now.wall_ms()).max(0));
    let holders = match look.kind {
        Kind::Free => Vec::new(),
        _ => ks.holders(&key),
    };
    let holders = holders
        .into_iter()
        .map(|holder| describe_holder(core, now, &key, holder, remaining))
        .collect();
    let queue = core.describe(now, key.db, &key.name);
    Ok(Responder::Map(vec![
        ("mode", text(mode)),
        ("holders", Responder::Array(holders)),
        ("waiters", integer(i64::try_from(queue.waiters).ok())),
        ("oldest-wait-ms", integer(queue.oldest_wait_ms)),
    ]))
}

fn describe_holder(
    core: &Core,
    now: Now,
    key: &Key,
    holder: Holder,
    remaining: Option<i64>,
) -> Responder {
    let known = core.hold_of(now, key.db, &key.name, &holder.owner);
    Responder::Map(vec![
        ("owner", Responder::Text(holder.owner)),
        ("mode", text(name(holder.mode))),
        ("holds", Responder::Integer(holder.holds)),
        ("remaining-ms", integer(remaining)),
        ("held-ms", integer(known.map(|(_, held)| held))),
        ("token", integer(known.map(|(token, _)| token))),
    ])
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Read => "read",
        Mode::Write => "write",
    }
}

fn text(text: &str) -> Responder {
    Responder::Text(text.as_bytes().to_vec())
}

fn integer(value: Option<i64>) -> Responder {
    value.map_or(Responder::Null, Responder::Integer)
}
