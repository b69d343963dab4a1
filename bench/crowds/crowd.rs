//! The crowds: n of something on one owner, key, connection, session or lock.

use super::cluster::begin_to_move;
use super::scene::{close, close_late};
use super::script::By::{Client, Session};
use super::script::Step::{self, Blocks, Do, Each, One};

/// So many of something, and how they come to be.
pub struct Crowd {
    pub name: &'static str,
    pub make: &'static [Step],
    /// No more than so many can be had.
    pub most: usize,
    pub in_a_cluster: bool,
}

impl Crowd {
    /// Whether all of it ends at a moment.
    pub fn ends(&self) -> bool {
        self.make.iter().any(|step| match step {
            Step::Each(_, ask) | Step::One(_, ask) => ask.contains("LATE"),
            _ => false,
        })
    }
}

const MANY: usize = 100_000;
/// As many as a server lets connect where nothing is set.
const CLIENTS: usize = 10_000;
/// The keys that a request may have.
const KEYS: usize = 1_024;
/// The places that are kept.
const PLACES: usize = 16_384;

const fn crowd(name: &'static str, make: &'static [Step]) -> Crowd {
    up_to(MANY, name, make)
}

const fn up_to(most: usize, name: &'static str, make: &'static [Step]) -> Crowd {
    Crowd {
        name,
        make,
        most,
        in_a_cluster: false,
    }
}

/// The same on a node of a cluster: of the one or the many locks it is the same slot.
const fn in_a_cluster(name: &'static str, make: &'static [Step]) -> Crowd {
    Crowd {
        in_a_cluster: true,
        ..crowd(name, make)
    }
}

const ONE_HELD: Step = One(Client, "RLOCK.ACQUIRE lock holder LONG");
const ALL_HELD: Step = Each(Client, "RLOCK.ACQUIRE {lock}:# holder LONG");
const OWNER_WAITS: Step = Each(
    Session,
    "RLOCK.ACQUIRE {lock}:# crowd LONG QUEUE 0 NOTIFY CHANNEL #",
);
const OWNERS_WAIT: Step = Each(
    Session,
    "RLOCK.ACQUIRE {lock}:# owner:# LONG QUEUE 0 NOTIFY CHANNEL #",
);
const QUEUE_WAITS: Step = Each(
    Session,
    "RLOCK.ACQUIRE lock owner:# LONG QUEUE 0 NOTIFY CHANNEL #",
);
const QUEUE_WAITS_ONCE: Step = Each(
    Session,
    "RLOCK.ACQUIRE lock owner:# LONG QUEUE 0 NOTIFY CHANNEL # ONCE",
);
const ALL_READ: Step = Each(Client, "RLOCK.ACQUIRE lock owner:# LONG READ");
const ALL_HAVE_A_PERMIT: Step = Each(Client, "RLOCK.ACQUIRE lock owner:# LONG LIMIT 1000000");
const OWNER_HOLDS: Step = Each(Client, "RLOCK.ACQUIRE {lock}:# crowd LONG");
const OWNER_IS_NOTIFIED: Step = Each(
    Session,
    "RLOCK.ACQUIRE {lock}:# crowd LONG NOTIFY CHANNEL #",
);

pub const WAITS: Crowd = crowd("one owner waits for n locks", &[ALL_HELD, OWNER_WAITS]);
pub const WAITS_LATE: Crowd = crowd(
    WAITS.name,
    &[
        ALL_HELD,
        Each(
            Session,
            "RLOCK.ACQUIRE {lock}:# crowd LONG QUEUE LATE NOTIFY CHANNEL #",
        ),
    ],
);
pub const OWNERS: Crowd = crowd("n owners wait for a lock each", &[ALL_HELD, OWNERS_WAIT]);
pub const QUEUE: Crowd = crowd("n owners wait for one lock", &[ONE_HELD, QUEUE_WAITS]);
pub const QUEUE_LATE: Crowd = crowd(
    QUEUE.name,
    &[
        ONE_HELD,
        Each(
            Session,
            "RLOCK.ACQUIRE lock owner:# LONG QUEUE LATE NOTIFY CHANNEL #",
        ),
    ],
);
pub const BLOCKED: Crowd = up_to(
    CLIENTS,
    "n clients are blocked at one lock",
    &[ONE_HELD, Blocks("RLOCK.ACQUIRE lock owner:# LONG BLOCK 0")],
);

/// Places that outlast everything here, and some that all end at once.
pub const PLACES_KEPT: Crowd = up_to(
    PLACES,
    "n places kept for ONCE",
    &[
        One(Client, "CONFIG SET rlock.keep-place 600000"),
        ONE_HELD,
        QUEUE_WAITS_ONCE,
        Do(close),
    ],
);
pub const PLACES_LATE: Crowd = up_to(
    PLACES,
    PLACES_KEPT.name,
    &[ONE_HELD, QUEUE_WAITS_ONCE, Do(close_late)],
);

pub const KEYS_FREE: Crowd = up_to(KEYS, "n keys that are free", &[]);
pub const KEYS_AWAITED: Crowd = up_to(
    KEYS,
    "one MACQUIRE waits for n keys",
    &[
        ALL_HELD,
        One(
            Session,
            "RLOCK.MACQUIRE KEYS crowd LONG QUEUE 0 NOTIFY CHANNEL 1",
        ),
    ],
);
pub const KEYS_AWAITED_LATE: Crowd = up_to(
    KEYS,
    KEYS_AWAITED.name,
    &[
        ALL_HELD,
        One(
            Session,
            "RLOCK.MACQUIRE KEYS crowd LONG QUEUE LATE NOTIFY CHANNEL 1",
        ),
    ],
);
pub const KEYS_HELD: Crowd = up_to(
    KEYS,
    "one MACQUIRE holds n keys",
    &[One(
        Session,
        "RLOCK.MACQUIRE KEYS crowd LONG NOTIFY CHANNEL 1 WATCHDOG",
    )],
);
pub const KEYS_HELD_LATE: Crowd = up_to(
    KEYS,
    KEYS_HELD.name,
    &[One(
        Session,
        "RLOCK.MACQUIRE KEYS crowd LATE NOTIFY CHANNEL 1",
    )],
);

pub const READERS: Crowd = crowd("n readers of one lock", &[ALL_READ]);
pub const READERS_NOTIFIED: Crowd = crowd(
    "n readers with NOTIFY",
    &[Each(
        Session,
        "RLOCK.ACQUIRE lock owner:# LONG READ NOTIFY CHANNEL #",
    )],
);
pub const READERS_LATE: Crowd = crowd(
    READERS.name,
    &[Each(Client, "RLOCK.ACQUIRE lock owner:# LATE READ")],
);
pub const PERMITS: Crowd = crowd("n holders of permits", &[ALL_HAVE_A_PERMIT]);
pub const PERMITS_NOTIFIED: Crowd = crowd(
    "n holders of permits with NOTIFY",
    &[Each(
        Session,
        "RLOCK.ACQUIRE lock owner:# LONG LIMIT 1000000 NOTIFY CHANNEL #",
    )],
);
pub const PERMITS_LATE: Crowd = crowd(
    PERMITS.name,
    &[Each(
        Client,
        "RLOCK.ACQUIRE lock owner:# LATE LIMIT 1000000",
    )],
);
pub const NESTED: Crowd = crowd(
    "n nested holds with NOTIFY",
    &[Each(
        Session,
        "RLOCK.ACQUIRE lock crowd LONG NOTIFY CHANNEL #",
    )],
);
pub const HOLDS: Crowd = crowd("n locks of one owner", &[OWNER_HOLDS]);
pub const HOLDS_LATE: Crowd = crowd(
    HOLDS.name,
    &[Each(Client, "RLOCK.ACQUIRE {lock}:# crowd LATE")],
);
pub const NOTIFIED: Crowd = crowd(
    "n locks with NOTIFY of one connection",
    &[OWNER_IS_NOTIFIED],
);
pub const WATCHED: Crowd = crowd(
    "n locks with WATCHDOG of one connection",
    &[Each(
        Session,
        "RLOCK.ACQUIRE {lock}:# crowd LONG NOTIFY CHANNEL # WATCHDOG",
    )],
);

const MODE: Step = One(Client, "HSET lock mode read");
const OTHER_FIELDS: Step = Each(Client, "HSET lock field:# x");
const AN_END: Step = One(Client, "PEXPIRE lock LONG");

/// A hash with a field `mode` and n more that are somebody's data; the same without an end;
/// the same where each field could be a reader's, without a lease key.
pub const FIELDS: Crowd = crowd(
    "a hash mode=read of n other fields",
    &[MODE, OTHER_FIELDS, AN_END],
);
pub const ENDLESS: Crowd = crowd("the same without a TTL", &[MODE, OTHER_FIELDS]);
pub const LEASELESS: Crowd = crowd(
    "the same, each like a reader's",
    &[MODE, Each(Client, "HSET lock field:# 1"), AN_END],
);

pub const QUEUE_THERE: Crowd = in_a_cluster(QUEUE.name, QUEUE.make);
pub const OWNERS_THERE: Crowd = in_a_cluster(OWNERS.name, OWNERS.make);
pub const READERS_THERE: Crowd = in_a_cluster(READERS.name, READERS.make);
pub const PERMITS_THERE: Crowd = in_a_cluster(PERMITS.name, PERMITS.make);
pub const NOTIFIED_THERE: Crowd = in_a_cluster(NOTIFIED.name, NOTIFIED.make);
pub const HOLDS_ON_THEIR_WAY: Crowd = in_a_cluster(
    "n locks of one owner, their slot on its way",
    &[OWNER_HOLDS, Do(begin_to_move)],
);
pub const QUEUE_ON_ITS_WAY: Crowd = in_a_cluster(
    "n owners wait for one lock, its slot on its way",
    &[ONE_HELD, QUEUE_WAITS, Do(begin_to_move)],
);

/// What the like happens to, on a server without the module: nothing; n hashes with a TTL; a
/// hash of n fields and as many keys beside it, as readers have; the same where they end; n
/// clients who BLPOP.
pub const NOBODY: Crowd = up_to(MANY, "", &[]);
pub const HASHES: Crowd = crowd(
    "",
    &[
        Each(Client, "HSET {lock}:# holder 1"),
        Each(Client, "PEXPIRE {lock}:# LONG"),
    ],
);
pub const HASH_AND_KEYS: Crowd = crowd(
    "",
    &[
        Each(Client, "HSET lock owner:# 1"),
        Each(Client, "SET {lock}:# 1 PX LONG"),
    ],
);
pub const HASHES_LATE: Crowd = crowd(
    "",
    &[
        Each(Client, "HSET {lock}:# holder 1"),
        Each(Client, "PEXPIRE {lock}:# LATE"),
    ],
);
pub const HASH_LATE: Crowd = crowd(
    "",
    &[
        Each(Client, "HSET lock owner:# 1"),
        One(Client, "PEXPIRE lock LATE"),
    ],
);
pub const HASH_AND_KEYS_LATE: Crowd = crowd(
    "",
    &[
        Each(Client, "HSET lock owner:# 1"),
        Each(Client, "SET {lock}:# 1 PX LATE"),
        One(Client, "PEXPIRE lock LATE"),
    ],
);
pub const POPPERS: Crowd = up_to(CLIENTS, "", &[Blocks("BLPOP lock 0")]);
pub const HASHES_THERE: Crowd = in_a_cluster("", HASHES.make);
pub const HASH_AND_KEYS_THERE: Crowd = in_a_cluster("", HASH_AND_KEYS.make);
