//! RLOCK.INFO: what is known of a lock.

use super::args;
use crate::error::Error;
use crate::lock::{Core, Holder, Key, Keyspace, Known, Mode, Now};
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// So many holders are listed without COUNT.
const USUAL: usize = 1000;

/// `RLOCK.INFO key [COUNT n]`
///
/// A map that describes a lock, also a free one: `mode` (`free`, `reserved`,
/// `exclusive`, `read`, `write`, `permits`), of permits `limit` (the one in force),
/// `asked-limit` (the one that requests say) and `available`, `holders` (each a map of
/// `owner`, `mode`, `holds`, or for permits `permits`,
/// `remaining-ms`, `held-ms`, `token`, and `watchdog`, the id of the client whose
/// connection keeps it; `wanted-ms`: for how long somebody has waited whom it keeps out, if it asked
/// to be notified (`WANTED`); null where there is none, or where this server does not
/// know; at most `n`, 1000 without COUNT), `waiters`, and `oldest-wait-ms` (null when
/// nobody waits). A key that is no lock is the error WRONGTYPE. Changes nothing.
pub struct InfoCommand;

impl Command for InfoCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.info",
        flags: "readonly fast",
        acl: "read fast",
        keys: KeyArgs::One(Use::Read),
        summary: c"Describes a lock",
        complexity: c"O(N) with N the holders and reservations that are listed, at most COUNT",
        usage: "RLOCK.INFO key [COUNT n]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let name = args.next()?;
        let most = args.options(&["COUNT"])?.count.unwrap_or(USUAL);
        let key = Key::new(call.db(), name);
        call.inspect(|core, ks, now| describe(core, ks, now, key, most))?
    }
}

fn describe<K: Keyspace>(
    core: &Core,
    ks: &mut K,
    now: Now,
    key: Key,
    most: usize,
) -> Result<Responder, Error> {
    let holders = core.holders_of(ks, now, &key, most)?;
    // Where all have run out, nobody holds it.
    let pool = core.pool_of(ks, &key).filter(|_| !holders.is_empty());
    let queue = core.describe(now, &key);
    let mode = match holders.first() {
        Some(holder) => mode_name(holder.mode),
        None if queue.waiters > 0 || core.has_turn(key.db, &key.name) => "reserved",
        None => "free",
    };
    let holders = holders
        .iter()
        .take(most)
        .map(|holder| describe_holder(core, now, &key, holder))
        .collect();
    let mut fields = vec![("mode", text(mode))];
    if let Some(pool) = pool {
        fields.extend([
            ("limit", Responder::Integer(pool.limit)),
            ("asked-limit", Responder::Integer(pool.asked)),
            ("available", Responder::Integer(pool.available())),
        ]);
    }
    fields.extend([
        ("holders", Responder::Array(holders)),
        ("waiters", integer(i64::try_from(queue.waiters).ok())),
        ("oldest-wait-ms", integer(queue.oldest_wait_ms)),
    ]);
    Ok(Responder::Map(fields))
}

fn describe_holder(core: &Core, now: Now, key: &Key, holder: &Holder) -> Responder {
    let known = core.hold_of(now, key, &holder.owner, holder.mode);
    Responder::Map(holder_fields(now, holder, &known).into())
}

/// The fields of a holder.
pub fn holder_fields(now: Now, holder: &Holder, known: &Known) -> [(&'static str, Responder); 8] {
    let of_what = match holder.mode {
        Mode::Permits => "permits",
        Mode::Exclusive | Mode::Write | Mode::Read => "holds",
    };
    let remaining = holder.lease.end().map(|at| at.ms_from(now.wall_ms()));
    [
        ("owner", Responder::Text(holder.owner.to_vec())),
        ("mode", text(mode_name(holder.mode))),
        (of_what, Responder::Integer(holder.holds)),
        ("remaining-ms", integer(remaining)),
        ("held-ms", integer(known.held_ms)),
        ("token", integer(known.token.map(|token| token.0))),
        ("watchdog", Responder::id(known.watchdog)),
        ("wanted-ms", integer(known.wanted_ms)),
    ]
}

/// A mode as replies name it.
pub fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Read => "read",
        Mode::Write => "write",
        Mode::Permits => "permits",
    }
}

pub fn text(text: &str) -> Responder {
    Responder::Text(text.as_bytes().to_vec())
}

pub fn integer(value: Option<i64>) -> Responder {
    value.map_or(Responder::Null, Responder::Integer)
}
