//! RLOCK.INFO: what is known of a lock.

use super::args;
use crate::error::Error;
use crate::lock::{Core, Holder, Key, Keyspace, Known, Mode, Now};
use crate::server::{Call, Command, Keys, Responder, Spec, Use};

/// `RLOCK.INFO key`
///
/// A map that describes a lock, also a free one: `mode` (`free`, `reserved`,
/// `exclusive`, `read`, `write`), `holders` (each a map of `owner`, `mode`, `holds`,
/// `remaining-ms`, `held-ms`, `token`, and `watchdog`, the id of the client whose
/// connection keeps it; null where there is none, or where this server does not
/// know), `waiters`, and `oldest-wait-ms` (null when nobody waits). A key that is
/// no lock is the error WRONGTYPE. Changes nothing.
pub struct Info;

impl Command for Info {
    const SPEC: Spec = Spec {
        name: c"rlock.info",
        flags: "readonly fast",
        acl: c"read fast",
        keys: Keys::One(Use::Read),
        summary: c"Describes a lock",
        usage: "RLOCK.INFO key",
    };

    fn run(call: &Call<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let name = args.next()?;
        args.end()?;
        let key = Key::new(call.db(), name);
        call.inspect(|core, ks, now| describe(core, ks, now, key))?
    }
}

fn describe<K: Keyspace>(core: &Core, ks: &mut K, now: Now, key: Key) -> Result<Responder, Error> {
    let holders = core.holders_of(ks, &key)?;
    let queue = core.describe(now, &key);
    let mode = match holders.first() {
        Some(holder) => mode_name(holder.mode),
        None if queue.waiters > 0 || core.has_turn(key.db, &key.name) => "reserved",
        None => "free",
    };
    let holders = holders
        .iter()
        .map(|holder| describe_holder(core, now, &key, holder))
        .collect();
    Ok(Responder::Map(vec![
        ("mode", text(mode)),
        ("holders", Responder::Array(holders)),
        ("waiters", integer(i64::try_from(queue.waiters).ok())),
        ("oldest-wait-ms", integer(queue.oldest_wait_ms)),
    ]))
}

fn describe_holder(core: &Core, now: Now, key: &Key, holder: &Holder) -> Responder {
    let known = core.hold_of(now, key, &holder.owner, holder.mode);
    Responder::Map(holder_fields(now, holder, &known).into())
}

/// What is told of a holder.
pub fn holder_fields(now: Now, holder: &Holder, known: &Known) -> [(&'static str, Responder); 7] {
    let remaining = holder.lease.end().map(|at| at.ms_from(now.wall_ms()));
    [
        ("owner", Responder::Text(holder.owner.to_vec())),
        ("mode", text(mode_name(holder.mode))),
        ("holds", Responder::Integer(holder.holds)),
        ("remaining-ms", integer(remaining)),
        ("held-ms", integer(known.held_ms)),
        ("token", integer(known.token.map(|token| token.0))),
        ("watchdog", Responder::id(known.watchdog)),
    ]
}

/// A mode as replies name it.
pub fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Read => "read",
        Mode::Write => "write",
    }
}

pub fn text(text: &str) -> Responder {
    Responder::Text(text.as_bytes().to_vec())
}

pub fn integer(value: Option<i64>) -> Responder {
    value.map_or(Responder::Null, Responder::Integer)
}
