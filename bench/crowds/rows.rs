//! The table: n of what against each thing that can happen to it.

use super::happen::{self as h, Happen};
use super::make::{self as m, Make};

/// What is measured, and the like of it on a server without the module.
pub struct Row {
    pub crowd: &'static str,
    pub make: Make,
    pub what: &'static str,
    pub happen: Happen,
    /// The like's crowd and what happens to it; a server at rest if there is none.
    pub like: Option<(&'static str, Make, Happen)>,
    /// No more than so many can be had.
    pub most: usize,
}

impl Row {
    /// How it is called, in the report and for `--row`.
    pub fn name(&self) -> String {
        format!("{}: {}", self.crowd, self.what)
    }
}

type Like = (&'static str, Make, Happen);

const REST: Option<Like> = None;
const CLOSE: Option<Like> = Some(("n BLPOP close", m::poppers, h::close_poppers));
const DELETE: Option<Like> = Some(("DEL of n fields, n keys", m::hash_and_keys, h::delete_plain));
const RENAME: Option<Like> = Some(("RENAME of it", m::hash_and_keys, h::rename_plain));
const FLUSH: Option<Like> = Some(("FLUSHALL of n hashes", m::hashes, h::flush_plain));
const SWAP: Option<Like> = Some(("SWAPDB of n hashes", m::hashes, h::swap));
const DEMOTE: Option<Like> = Some(("REPLICAOF with n hashes", m::hashes, h::demote_plain));
const READ: Option<Like> = Some(("HGETALL of n fields", m::hash_and_keys, h::get_all));

const MANY: usize = 100_000;
/// As many as a server lets connect where nothing is set.
const CLIENTS: usize = 10_000;

const fn row(
    (crowd, make): (&'static str, Make),
    what: &'static str,
    happen: Happen,
    like: Option<Like>,
) -> Row {
    Row {
        crowd,
        make,
        what,
        happen,
        like,
        most: MANY,
    }
}

const fn clients(row: Row) -> Row {
    Row {
        most: CLIENTS,
        ..row
    }
}

type Crowd = (&'static str, Make);

const WAITS: Crowd = ("one owner waits for n locks", m::one_owner_waits);
const WAITS_LATE: Crowd = (
    "one owner waits for n locks",
    m::one_owner_waits_for_a_while,
);
const OWNERS: Crowd = ("n owners wait for a lock each", m::owners_wait);
const QUEUE: Crowd = ("n owners wait for one lock", m::all_wait_for_one);
const QUEUE_LATE: Crowd = (
    "n owners wait for one lock",
    m::all_wait_for_one_for_a_while,
);
const BLOCKED: Crowd = ("n clients are blocked at one lock", m::blocked);
const READERS: Crowd = ("n readers of one lock", m::readers);
const READERS_TOLD: Crowd = ("n readers with NOTIFY", m::readers_told);
const READERS_LATE: Crowd = ("n readers of one lock", m::readers_for_a_while);
const PERMITS: Crowd = ("n holders of permits", m::permits);
const NESTED: Crowd = ("n nested holds with NOTIFY", m::nested);
const HOLDS: Crowd = ("n locks of one owner", m::holds);
const HOLDS_LATE: Crowd = ("n locks of one owner", m::holds_for_a_while);
const TOLD: Crowd = ("n locks with NOTIFY of one connection", m::holds_told);
const WATCHED: Crowd = ("n locks with WATCHDOG of one connection", m::holds_watched);
const FIELDS: Crowd = ("a hash mode=read of n other fields", m::fields);
const ENDLESS: Crowd = ("the same without a TTL", m::endless_fields);
const LEASELESS: Crowd = ("the same, each like a reader's", m::leaseless_fields);

pub const ROWS: [Row; 71] = [
    row(WAITS, "it asks for one more", h::wait_more, REST),
    row(WAITS, "another waits behind it", h::wait_behind, REST),
    row(WAITS, "CANCEL of one", h::cancel, REST),
    row(WAITS, "all are granted, one by one", h::release_all, REST),
    row(WAITS_LATE, "all time out at once", h::time_out, REST),
    row(WAITS, "its connection closes", h::close, REST),
    row(WAITS, "FLUSHALL", h::flush, FLUSH),
    row(WAITS, "SWAPDB", h::swap, SWAP),
    row(WAITS, "demotion", h::demote, DEMOTE),
    row(WAITS, "TOP COUNT 1", h::top, REST),
    row(WAITS, "INFO rlock", h::section, REST),
    row(OWNERS, "the connection closes", h::close, REST),
    row(OWNERS, "SWAPDB", h::swap, SWAP),
    row(OWNERS, "demotion", h::demote, DEMOTE),
    row(QUEUE, "one more waits", h::wait_at_one, REST),
    row(QUEUE, "it goes from hand to hand", h::hand_over, REST),
    row(QUEUE, "CANCEL of one", h::cancel_of_one_lock, REST),
    row(QUEUE_LATE, "all time out at once", h::time_out, REST),
    row(QUEUE, "the connection closes", h::close, REST),
    row(QUEUE, "INFO COUNT 1", h::info, REST),
    row(QUEUE, "WAITERS COUNT 1", h::waiters, REST),
    row(QUEUE, "TOP COUNT 1", h::top, REST),
    row(QUEUE, "SWAPDB", h::swap, SWAP),
    row(QUEUE, "demotion", h::demote, DEMOTE),
    clients(row(BLOCKED, "all close", h::close, CLOSE)),
    clients(row(BLOCKED, "demotion", h::demote, CLOSE)),
    row(READERS, "one more", h::read_more, REST),
    row(READERS, "RELEASE of one", h::release_reader, REST),
    row(READERS, "RENEW of one", h::renew_reader, REST),
    row(READERS_LATE, "all leases end at once", h::expire, REST),
    row(READERS, "INFO COUNT 1", h::info, REST),
    row(READERS, "LIST COUNT 1", h::list, REST),
    row(READERS, "FORCE", h::force, DELETE),
    row(READERS, "DEL", h::delete, DELETE),
    row(READERS, "RENAME", h::rename, RENAME),
    row(READERS, "SET", h::overwrite, DELETE),
    row(READERS, "SWAPDB", h::swap, SWAP),
    row(READERS, "FLUSHALL", h::flush, FLUSH),
    row(READERS, "demotion", h::demote, DEMOTE),
    row(READERS_TOLD, "the connection closes", h::close, REST),
    row(READERS_TOLD, "DEL", h::delete, DELETE),
    row(READERS_TOLD, "demotion", h::demote, DEMOTE),
    row(PERMITS, "one more", h::permit_more, REST),
    row(PERMITS, "RELEASE of one", h::release_permit, REST),
    row(PERMITS, "RENEW of one", h::renew_permit, REST),
    row(PERMITS, "INFO COUNT 1", h::info, REST),
    row(PERMITS, "FORCE", h::force, DELETE),
    row(PERMITS, "DEL", h::delete, DELETE),
    row(PERMITS, "RENAME", h::rename, RENAME),
    row(PERMITS, "demotion", h::demote, DEMOTE),
    row(NESTED, "one more", h::nest_more, REST),
    row(NESTED, "RENEW", h::renew_own, REST),
    row(NESTED, "RENEW NOTIFY elsewhere", h::renew_elsewhere, REST),
    row(NESTED, "RELEASE", h::release_own, REST),
    row(NESTED, "the connection closes", h::close, REST),
    row(NESTED, "DEL", h::delete, DELETE),
    row(HOLDS, "one more", h::hold_more, REST),
    row(HOLDS, "RELEASE of one", h::release_locks, REST),
    row(HOLDS_LATE, "all leases end at once", h::expire, REST),
    row(HOLDS, "LIST COUNT 1", h::list, REST),
    row(HOLDS, "FLUSHALL", h::flush, FLUSH),
    row(HOLDS, "SWAPDB", h::swap, SWAP),
    row(HOLDS, "demotion", h::demote, DEMOTE),
    row(TOLD, "the connection closes", h::close, REST),
    row(TOLD, "FLUSHALL", h::flush, FLUSH),
    row(WATCHED, "the connection closes", h::close, REST),
    row(WATCHED, "demotion", h::demote, DEMOTE),
    row(FIELDS, "ACQUIRE", h::acquire_refused, REST),
    row(FIELDS, "INFO COUNT 1", h::info_refused, REST),
    row(ENDLESS, "INFO COUNT 1", h::info_refused, REST),
    row(LEASELESS, "ACQUIRE", h::acquire_leaseless, READ),
];
