//! What rlock is to reach beside the least that can be paid for a lock: by kind of server where
//! servers differ in what they themselves take.

use crate::load::{Connection, Outcome};

/// Pairs a second over the least module's, however many are in flight.
pub const PAIRS_OF_LEAST: f64 = 0.80;

/// And over the same lock as Lua scripts, in a pipeline.
pub const PAIRS_OF_LUA: f64 = 3.2;

/// The server's time of a hand-over over the least module's.
pub const HAND_OVER_TIME: f64 = 1.10;

/// Hand-overs a second of queued waiters over those of blocked ones.
pub const QUEUED: f64 = 0.95;

/// Instructions of a command of others over those without the module, nobody waiting.
pub const OTHERS: f64 = 1.01;

/// Bytes of a held plain lock beyond those of a hash of one field with a TTL.
pub const BYTES: f64 = 150.0;

/// Instructions of a pair over those of SET NX PX and DEL, with an AOF.
pub const PAIR_WITH_AOF: f64 = 1.8;

/// Where the least module was not built.
pub const NO_LEAST: &str = "Without the least module: `make bench` and `make costs` build it.";

/// Those that differ by kind of server.
pub struct Targets {
    /// The servers, in a word.
    pub servers: &'static str,
    /// Instructions of a pair over those of SET NX PX and DEL.
    pub pair: f64,
    /// Pairs a second over those of SET and DEL, in a pipeline.
    pub pairs_of_set: f64,
    /// Instructions of a hand-over among 100 clients.
    pub hand_over: f64,
}

const REDIS_7: Targets = Targets {
    servers: "Redis 7",
    pair: 1.45,
    pairs_of_set: 0.58,
    hand_over: 40_000.0,
};

const REDIS_8: Targets = Targets {
    servers: "Redis 8",
    pair: 1.35,
    pairs_of_set: 0.58,
    hand_over: 36_000.0,
};

const VALKEY: Targets = Targets {
    servers: "Valkey",
    pair: 1.35,
    pairs_of_set: 0.72,
    hand_over: 46_000.0,
};

impl Targets {
    /// Those of the server that is asked.
    pub fn of(connection: &mut Connection) -> Outcome<&'static Self> {
        if connection.info("server", "valkey_version")?.is_some() {
            return Ok(&VALKEY);
        }
        let version = connection.info("server", "redis_version")?;
        let version = version.unwrap_or_default();
        let major = version.split('.').next().and_then(|word| word.parse().ok());
        Ok(match major {
            Some(8..=u32::MAX) => &REDIS_8,
            _ => &REDIS_7,
        })
    }
}
