//! The table: n of what against each thing that can happen to it.

use super::cluster::move_slot;
use super::crowd::{self as c, Crowd};
use super::scene::{close, come_to_the_end};
use super::script::By::{self, Another, Client, Session};
use super::script::Happen::{self, AtOnce, InTurn, Requests};
use super::script::Step::{self, Do, One};

/// What is measured, and the like of it on a server without the module.
#[derive(Clone, Copy)]
pub struct Row {
    pub what: &'static str,
    pub happen: Happen,
    pub like: &'static Like,
}

pub struct Like {
    pub name: &'static str,
    pub crowd: Crowd,
    pub happen: Happen,
}

impl Row {
    /// How it is called, in the report and for `--row`.
    pub fn name(&self, crowd: &Crowd) -> String {
        format!("{}: {}", crowd.name, self.what)
    }

    const fn beside(self, like: &'static Like) -> Row {
        Row { like, ..self }
    }
}

const fn row(what: &'static str, happen: Happen) -> Row {
    let like = &REST;
    Row { what, happen, like }
}

/// A client's requests, to which the crowd is the background.
const fn ask(what: &'static str, asks: &'static [&'static str]) -> Row {
    ask_by(Client, what, asks)
}

const fn ask_by(by: By, what: &'static str, asks: &'static [&'static str]) -> Row {
    let before = &[];
    row(what, Requests { before, by, asks })
}

const fn at_once(
    what: &'static str,
    steps: &'static [Step],
    until: &'static [&'static str],
) -> Row {
    row(what, AtOnce { steps, until })
}

const fn in_turn(what: &'static str, ask: &'static str, until: &'static [&'static str]) -> Row {
    let by = Client;
    row(what, InTurn { by, ask, until })
}

const fn like(name: &'static str, crowd: Crowd, steps: &'static [Step]) -> Like {
    let until = &[];
    let happen = AtOnce { steps, until };
    Like {
        name,
        crowd,
        happen,
    }
}

static REST: Like = like("a server at rest", c::NOBODY, &[]);
static LIKE_CLOSE: Like = Like {
    name: "n BLPOP close",
    crowd: c::POPPERS,
    happen: AtOnce {
        steps: &[Do(close)],
        until: &["blocked_clients"],
    },
};
static LIKE_DEMOTE_BLOCKED: Like = Like {
    name: "REPLICAOF with n BLPOP",
    crowd: c::POPPERS,
    happen: AtOnce {
        steps: &[REPLICAOF],
        until: &["blocked_clients"],
    },
};
static LIKE_DELETE: Like = like(
    "DEL of n fields, of n keys",
    c::HASH_AND_KEYS,
    &[One(Client, "DEL lock"), One(Client, "DEL KEYS")],
);
static LIKE_DELETE_ONE: Like = like(
    "DEL of n fields",
    c::HASH_AND_KEYS,
    &[One(Client, "DEL lock")],
);
static LIKE_END: Like = like("n hashes end", c::HASHES_LATE, &[Do(come_to_the_end)]);
static LIKE_END_ONE: Like = like(
    "a hash of n fields ends",
    c::HASH_LATE,
    &[Do(come_to_the_end)],
);
static LIKE_END_WITH_KEYS: Like = like(
    "a hash of n fields ends, n keys",
    c::HASH_AND_KEYS_LATE,
    &[Do(come_to_the_end)],
);
static LIKE_RENAME: Like = like("RENAME of it", c::HASH_AND_KEYS, &[RENAME_LOCK]);
static LIKE_READ: Like = like(
    "HGETALL of n fields",
    c::HASH_AND_KEYS,
    &[One(Client, "HGETALL lock")],
);
static LIKE_FLUSH: Like = like("FLUSHALL of n hashes", c::HASHES, &[FLUSHALL]);
static LIKE_FLUSH_ONE: Like = like(
    "FLUSHALL of n fields, n keys",
    c::HASH_AND_KEYS,
    &[FLUSHALL],
);
static LIKE_SWAP: Like = like("SWAPDB of n hashes", c::HASHES, &[SWAPDB]);
static LIKE_DEMOTE: Like = like("REPLICAOF with n hashes", c::HASHES, &[REPLICAOF]);
static LIKE_MOVE: Like = like(
    "a slot of n hashes moves",
    c::HASHES_THERE,
    &[Do(move_slot)],
);
static LIKE_MOVE_ONE: Like = like(
    "one of n fields, n keys moves",
    c::HASH_AND_KEYS_THERE,
    &[Do(move_slot)],
);

const FLUSHALL: Step = One(Client, "FLUSHALL");
const SWAPDB: Step = One(Client, "SWAPDB 0 1");
const RENAME_LOCK: Step = One(Client, "RENAME lock elsewhere");
/// Nobody is there.
const REPLICAOF: Step = One(Client, "REPLICAOF 127.0.0.1 1");

const NONE_WAITS: &[&str] = &["rlock_waiting"];
const NONE_HELD: &[&str] = &["rlock_held"];
const NONE_LEFT: &[&str] = &["rlock_waiting", "rlock_held", "rlock_watchdog_holds"];
const RESTS: &[&str] = &[];

const CLOSE: Row = at_once(
    "its connection closes",
    &[Do(close)],
    &["rlock_waiting", "rlock_watchdog_holds"],
);
/// Nothing shows it when a connection is only notified of holds.
const CLOSE_NOTIFIED: Row = at_once("its connection closes", &[Do(close)], RESTS);
const TIME_OUT: Row = at_once("all time out at once", &[Do(come_to_the_end)], NONE_WAITS);
const EXPIRE: Row = at_once("all leases end at once", &[Do(come_to_the_end)], NONE_HELD);
const FLUSH: Row = at_once("FLUSHALL", &[FLUSHALL], RESTS).beside(&LIKE_FLUSH);
const SWAP: Row = at_once("SWAPDB", &[SWAPDB], RESTS).beside(&LIKE_SWAP);
const DEMOTE: Row = at_once("demotion", &[REPLICAOF], NONE_LEFT).beside(&LIKE_DEMOTE);
const FORCE: Row =
    at_once("FORCE", &[One(Client, "RLOCK.FORCE lock")], NONE_HELD).beside(&LIKE_DELETE);
const DELETE: Row = at_once("DEL", &[One(Client, "DEL lock")], NONE_HELD).beside(&LIKE_DELETE);
const RENAME: Row = at_once("RENAME", &[RENAME_LOCK], RESTS).beside(&LIKE_RENAME);
const OVERWRITE: Row = at_once("SET", &[One(Client, "SET lock 1")], RESTS).beside(&LIKE_DELETE);
const END_OF_HASH: Row = at_once(
    "the end of its hash by hand",
    &[One(Client, "PEXPIRE lock 1")],
    NONE_HELD,
)
.beside(&LIKE_DELETE);
const MOVE: Row = at_once("its slot moves", &[Do(move_slot)], NONE_LEFT).beside(&LIKE_MOVE);
const MOVE_ONE: Row = at_once("its slot moves", &[Do(move_slot)], NONE_LEFT).beside(&LIKE_MOVE_ONE);

const INFO: Row = ask("INFO COUNT 1", &["RLOCK.INFO lock COUNT 1"]);
const LIST: Row = ask("LIST COUNT 1", &["RLOCK.LIST COUNT 1"]);
const TOP: Row = ask("TOP COUNT 1", &["RLOCK.TOP COUNT 1"]);
const SECTION: Row = ask("INFO rlock", &["INFO rlock"]);
const WAIT_AT_ONE: Row = ask_by(
    Another,
    "one more waits",
    &["RLOCK.ACQUIRE lock late:# LONG QUEUE 0 NOTIFY CHANNEL #"],
);
const WAIT_BEHIND: Row = ask_by(
    Another,
    "another waits behind it",
    &["RLOCK.ACQUIRE {lock}:# late:# LONG QUEUE 0 NOTIFY CHANNEL #"],
);
const CANCEL_ONE: Row = ask("CANCEL of one", &["RLOCK.CANCEL lock owner:~"]);

/// Requests come first: one crowd bears them all.
pub static TABLE: [(&Crowd, &[Row]); 34] = [
    (
        &c::WAITS,
        &[
            row(
                "it asks for one more",
                Requests {
                    before: &[Step::Some(Client, "RLOCK.ACQUIRE more:# other LONG")],
                    by: Session,
                    asks: &["RLOCK.ACQUIRE more:# crowd LONG QUEUE 0 NOTIFY CHANNEL more:#"],
                },
            ),
            TOP,
            SECTION,
            ask("CANCEL of one", &["RLOCK.CANCEL {lock}:~ crowd"]),
            WAIT_BEHIND,
            in_turn(
                "all are granted, one by one",
                "RLOCK.RELEASE {lock}:# holder",
                NONE_WAITS,
            ),
            CLOSE,
            FLUSH,
            SWAP,
            DEMOTE,
        ],
    ),
    (&c::WAITS_LATE, &[TIME_OUT]),
    (&c::OWNERS, &[CLOSE, SWAP, DEMOTE]),
    (
        &c::QUEUE,
        &[
            WAIT_AT_ONE,
            CANCEL_ONE,
            INFO,
            ask("WAITERS COUNT 1", &["RLOCK.WAITERS lock COUNT 1"]),
            TOP,
            row(
                "it goes from hand to hand",
                Requests {
                    before: &[One(Client, "RLOCK.RELEASE lock holder")],
                    by: Client,
                    asks: &["RLOCK.RELEASE lock owner:#"],
                },
            ),
            CLOSE,
            SWAP,
            DEMOTE,
        ],
    ),
    (&c::QUEUE_LATE, &[TIME_OUT]),
    (
        &c::BLOCKED,
        &[
            CLOSE.beside(&LIKE_CLOSE),
            DEMOTE.beside(&LIKE_DEMOTE_BLOCKED),
        ],
    ),
    (
        &c::PLACES_KEPT,
        &[
            INFO,
            ask(
                "RELEASE and ACQUIRE past them",
                &[
                    "RLOCK.RELEASE lock holder",
                    "RLOCK.ACQUIRE lock holder LONG",
                ],
            ),
            CANCEL_ONE,
            WAIT_AT_ONE,
            ask_by(
                Another,
                "asked again with ONCE",
                &["RLOCK.ACQUIRE lock owner:# LONG QUEUE 0 NOTIFY CHANNEL # ONCE"],
            ),
            FLUSH.beside(&REST),
            SWAP.beside(&REST),
            DEMOTE.beside(&REST),
            row(
                "all are asked again, one by one",
                InTurn {
                    by: Another,
                    ask: "RLOCK.ACQUIRE lock owner:# LONG QUEUE 0 NOTIFY CHANNEL # ONCE",
                    until: RESTS,
                },
            ),
        ],
    ),
    (
        &c::PLACES_LATE,
        &[at_once("all end at once", &[Do(come_to_the_end)], RESTS)],
    ),
    (
        &c::KEYS_FREE,
        &[at_once(
            "MACQUIRE",
            &[One(Client, "RLOCK.MACQUIRE KEYS crowd LONG")],
            RESTS,
        )],
    ),
    (
        &c::KEYS_AWAITED,
        &[
            WAIT_BEHIND,
            ask("INFO COUNT 1", &["RLOCK.INFO {lock}:# COUNT 1"]),
            TOP,
            at_once(
                "another such waits behind it",
                &[One(
                    Another,
                    "RLOCK.MACQUIRE KEYS late LONG QUEUE 0 NOTIFY CHANNEL 1",
                )],
                RESTS,
            ),
            in_turn(
                "they come free, key by key",
                "RLOCK.RELEASE {lock}:# holder",
                NONE_WAITS,
            ),
            at_once(
                "CANCEL",
                &[One(Client, "RLOCK.CANCEL {lock}:0 crowd")],
                NONE_WAITS,
            ),
            CLOSE,
            FLUSH,
            SWAP,
            DEMOTE,
        ],
    ),
    (&c::KEYS_AWAITED_LATE, &[TIME_OUT]),
    (
        &c::KEYS_HELD,
        &[
            ask("RENEW of one", &["RLOCK.RENEW {lock}:# crowd LONG"]),
            ask("RELEASE of one", &["RLOCK.RELEASE {lock}:# crowd"]),
            at_once(
                "MACQUIRE again with ONCE",
                &[One(
                    Another,
                    "RLOCK.MACQUIRE KEYS crowd LONG NOTIFY CHANNEL 1 WATCHDOG ONCE",
                )],
                RESTS,
            ),
            at_once(
                "MRENEW",
                &[One(Client, "RLOCK.MRENEW KEYS crowd LONG")],
                RESTS,
            ),
            at_once(
                "MRELEASE",
                &[One(Client, "RLOCK.MRELEASE KEYS crowd")],
                NONE_HELD,
            ),
            CLOSE,
            FLUSH,
            SWAP,
            DEMOTE,
        ],
    ),
    (&c::KEYS_HELD_LATE, &[EXPIRE]),
    (
        &c::READERS,
        &[
            ask("one more", &["RLOCK.ACQUIRE lock late:# LONG READ"]),
            ask("RELEASE of one", &["RLOCK.RELEASE lock owner:~ READ"]),
            ask("RENEW of one", &["RLOCK.RENEW lock owner:# LONG READ"]),
            INFO,
            LIST,
            at_once(
                "HDEL of one by hand",
                &[One(Client, "HDEL lock owner:1")],
                RESTS,
            )
            .beside(&LIKE_READ),
            FORCE,
            DELETE,
            END_OF_HASH,
            RENAME,
            OVERWRITE,
            SWAP,
            FLUSH.beside(&LIKE_FLUSH_ONE),
            DEMOTE,
        ],
    ),
    (&c::READERS_LATE, &[EXPIRE.beside(&LIKE_END_WITH_KEYS)]),
    (
        &c::READERS_NOTIFIED,
        &[CLOSE_NOTIFIED, DELETE, RENAME, DEMOTE],
    ),
    (
        &c::PERMITS,
        &[
            ask(
                "one more",
                &["RLOCK.ACQUIRE lock late:# LONG LIMIT 1000000"],
            ),
            ask("RELEASE of one", &["RLOCK.RELEASE lock owner:~ PERMITS 1"]),
            ask("RENEW of one", &["RLOCK.RENEW lock owner:# LONG PERMITS"]),
            INFO,
            FORCE.beside(&LIKE_DELETE_ONE),
            DELETE.beside(&LIKE_DELETE_ONE),
            END_OF_HASH.beside(&LIKE_DELETE_ONE),
            RENAME,
            DEMOTE,
        ],
    ),
    (&c::PERMITS_LATE, &[EXPIRE.beside(&LIKE_END_ONE)]),
    (
        &c::PERMITS_NOTIFIED,
        &[
            CLOSE_NOTIFIED,
            DELETE.beside(&LIKE_DELETE_ONE),
            END_OF_HASH.beside(&LIKE_DELETE_ONE),
            RENAME,
            DEMOTE,
        ],
    ),
    (
        &c::NESTED,
        &[
            ask_by(
                Session,
                "one more",
                &["RLOCK.ACQUIRE lock crowd LONG NOTIFY CHANNEL more:#"],
            ),
            ask("RENEW", &["RLOCK.RENEW lock crowd LONG"]),
            ask("RELEASE", &["RLOCK.RELEASE lock crowd"]),
            at_once(
                "RENEW NOTIFY elsewhere",
                &[One(Another, "RLOCK.RENEW lock crowd LONG NOTIFY CHANNEL 1")],
                RESTS,
            ),
            at_once(
                "RELEASE ALL elsewhere",
                &[One(Client, "RLOCK.RELEASE lock crowd ALL")],
                NONE_HELD,
            ),
            in_turn("RELEASE, one by one", "RLOCK.RELEASE lock crowd", NONE_HELD),
            CLOSE_NOTIFIED,
            // Its hash has one field.
            DELETE.beside(&REST),
            DEMOTE,
        ],
    ),
    (
        &c::HOLDS,
        &[
            ask("one more", &["RLOCK.ACQUIRE more:# crowd LONG"]),
            ask("RELEASE of one", &["RLOCK.RELEASE {lock}:~ crowd"]),
            LIST,
            FLUSH,
            SWAP,
            DEMOTE,
        ],
    ),
    (&c::HOLDS_LATE, &[EXPIRE.beside(&LIKE_END)]),
    (&c::NOTIFIED, &[CLOSE_NOTIFIED, FLUSH]),
    (&c::WATCHED, &[CLOSE, DEMOTE]),
    (
        &c::FIELDS,
        &[
            ask("ACQUIRE", &["!RLOCK.ACQUIRE lock another LONG READ"]),
            ask("INFO COUNT 1", &["!RLOCK.INFO lock COUNT 1"]),
        ],
    ),
    (
        &c::ENDLESS,
        &[ask("INFO COUNT 1", &["!RLOCK.INFO lock COUNT 1"])],
    ),
    (
        &c::LEASELESS,
        &[at_once(
            "ACQUIRE",
            // Granted, refused or to wait: whatever it comes to.
            &[One(Client, "?RLOCK.ACQUIRE lock another LONG READ")],
            RESTS,
        )
        .beside(&LIKE_READ)],
    ),
    (&c::QUEUE_THERE, &[MOVE_ONE.beside(&REST)]),
    (&c::OWNERS_THERE, &[MOVE]),
    (&c::READERS_THERE, &[MOVE_ONE]),
    (&c::PERMITS_THERE, &[MOVE_ONE]),
    (&c::NOTIFIED_THERE, &[MOVE]),
    (
        &c::HOLDS_ON_THEIR_WAY,
        &[
            ask("RENEW of one", &["RLOCK.RENEW {lock}:# crowd LONG"]),
            ask("RELEASE of one", &["RLOCK.RELEASE {lock}:~ crowd"]),
            LIST,
        ],
    ),
    (&c::QUEUE_ON_ITS_WAY, &[WAIT_AT_ONE, CANCEL_ONE, INFO]),
];
