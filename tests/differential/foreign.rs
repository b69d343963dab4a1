//! What others do to the keys of a lock: by hand, by mistake, and as Redisson.

use super::scene::{Scene, LEASES, SHORT};
use super::snapshot::{lease_key, tagged};
use super::step::{Bytes, Step, Words};
use crate::support::Random;

/// A word of a command: as it stands here, or one of the scene's.
fn filled(line: &str, with: &[(&str, &Bytes)]) -> Words {
    let word = |word: &str| match with.iter().find(|(name, _)| *name == word) {
        Some((_, value)) => (*value).clone(),
        None => word.into(),
    };
    line.split_whitespace().map(word).collect()
}

/// KEY is the lock, OWNER an owner, WRITER its field as a writer, LEASE one of its
/// lease keys, OTHER another lock, MS a lease, SOON a short one.
const BY_HAND: &[(usize, &str)] = &[
    (4, "DEL KEY"),
    (1, "UNLINK KEY"),
    (1, "SET KEY data"),
    (1, "SET KEY data PX MS"),
    (2, "PEXPIRE KEY MS"),
    (2, "PEXPIRE KEY SOON"),
    (2, "PEXPIREAT KEY 1"),
    (2, "PERSIST KEY"),
    (2, "HSET KEY OWNER 1"),
    (1, "HSET KEY OWNER 3"),
    (1, "HSET KEY OWNER 0"),
    (1, "HSET KEY OWNER -1"),
    (1, "HSET KEY OWNER 1.5"),
    (1, "HSET KEY OWNER 01"),
    (1, "HSET KEY OWNER x"),
    (1, "HSET KEY WRITER 1"),
    (1, "HSET KEY WRITER x"),
    (1, "HSET KEY mode read"),
    (1, "HSET KEY mode write"),
    (1, "HSET KEY mode other"),
    (1, "HSET KEY name Ann age 7"),
    (1, "HINCRBY KEY OWNER 1"),
    (1, "HINCRBY KEY OWNER -1"),
    (2, "HDEL KEY OWNER"),
    (1, "HDEL KEY WRITER"),
    (1, "HDEL KEY mode"),
    (1, "RPUSH KEY item"),
    (1, "RENAME KEY OTHER"),
    (1, "COPY KEY OTHER"),
    (3, "DEL LEASE"),
    (1, "PEXPIRE LEASE MS"),
    (2, "PEXPIRE LEASE SOON"),
    (1, "PERSIST LEASE"),
    (1, "SET LEASE KEY KEEPTTL"),
    (1, "SET LEASE 1 KEEPTTL"),
    (1, "SET LEASE other PX MS"),
    (1, "SET LEASE something-longer"),
    (1, "RPUSH LEASE item"),
    (1, "FLUSHALL"),
];

/// With a counter of tokens.
const COUNTER: &[(usize, &str)] = &[
    (6, "SET COUNTER 5"),
    (1, "SET COUNTER 0"),
    (1, "SET COUNTER -3"),
    (1, "SET COUNTER 5000000000000000"),
    (1, "INCR COUNTER"),
    (2, "DEL COUNTER"),
    (1, "PEXPIRE COUNTER MS"),
    (1, "SET COUNTER 5 PX MS"),
];

/// That give no token. Only where nobody meddles with the locks: a server that does
/// not know a hold under way asks the counter, where the other need not.
const SPOILED_COUNTER: &[(usize, &str)] = &[
    (1, "SET COUNTER 07"),
    (1, "SET COUNTER text"),
    (1, "SET COUNTER 9223372036854775807"),
    (1, "RPUSH COUNTER item"),
    (2, "DEL COUNTER"),
];

const QUEUE: &[(usize, &str)] = &[
    (6, "RPUSH QUEUE OWNER"),
    (2, "RPUSH QUEUE somebody else"),
    (1, "LPUSH QUEUE OTHER"),
    (2, "LPOP QUEUE"),
    (2, "DEL QUEUE"),
    (1, "SET QUEUE text"),
    (2, "ZADD TIMEOUTS 1 OWNER"),
    (2, "ZADD TIMEOUTS 1 somebody"),
    (1, "ZADD TIMEOUTS 99999999999999 OWNER"),
    (1, "SET TIMEOUTS text"),
    (1, "DEL TIMEOUTS"),
];

/// Where locks are held by permits. POOL is what their field `mode` says.
const PERMITS: &[(usize, &str)] = &[
    (3, "HDEL KEY OWNER"),
    (3, "HSET KEY OWNER 1@99999999999999"),
    (2, "HSET KEY OWNER 2@99999999999999"),
    (2, "HSET KEY OWNER 1@5"),
    (1, "HSET KEY OWNER 0@5"),
    (1, "HSET KEY OWNER -1@5"),
    (1, "HSET KEY OWNER x@1"),
    (1, "HSET KEY OWNER 3"),
    (1, "HSET KEY WRITER 1@99999999999999"),
    (1, "HSET KEY mode POOL"),
    (2, "HSET KEY mode POOL OWNER 1@99999999999999"),
    (1, "HDEL KEY mode"),
    (1, "HSET KEY mode permits"),
    (2, "PEXPIRE KEY MS"),
    (2, "PEXPIRE KEY SOON"),
    (2, "PERSIST KEY"),
    (2, "DEL KEY"),
    (1, "RENAME KEY OTHER"),
    (1, "COPY KEY OTHER"),
];

/// As somebody would who knows how permits are written.
const BY_LAYOUT: &[(usize, &str)] = &[(4, TAKE), (3, GIVE), (1, LENGTHEN)];

const OF_REDISSON: &[(usize, &str)] = &[
    (3, LOCK),
    (2, UNLOCK),
    (3, READ),
    (2, READ_UNLOCK),
    (3, WRITE),
    (2, WRITE_UNLOCK),
];

/// As Redisson's RLock: KEYS the lock; ARGV ms, owner.
const LOCK: &str = "-- RLock.lock
    if redis.call('EXISTS', KEYS[1]) == 1
        and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 'held' end
    redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    return redis.call('PEXPIRE', KEYS[1], ARGV[1])";

const UNLOCK: &str = "-- RLock.unlock
    if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 'not held' end
    if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then
        return redis.call('PEXPIRE', KEYS[1], ARGV[1])
    end
    redis.call('DEL', KEYS[1])
    return redis.call('PUBLISH', KEYS[4], 0)";

/// As Redisson's RReadWriteLock; KEYS[2] is the lease key up to its number, KEYS[3]
/// the channel.
const READ: &str = "-- readLock.lock
    local mode = redis.call('HGET', KEYS[1], 'mode')
    if mode and mode ~= 'read' and
        redis.call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 0 then return 'held' end
    if not mode then redis.call('HSET', KEYS[1], 'mode', 'read') end
    local lease = KEYS[2] .. redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('SET', lease, 1, 'PX', ARGV[1])
    local left = redis.call('PTTL', KEYS[1])
    return redis.call('PEXPIRE', KEYS[1], math.max(left, ARGV[1]))";

const READ_UNLOCK: &str = "-- readLock.unlock
    if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 'not held' end
    local left = redis.call('HINCRBY', KEYS[1], ARGV[2], -1)
    if left == 0 then redis.call('HDEL', KEYS[1], ARGV[2]) end
    redis.call('DEL', KEYS[2] .. (left + 1))
    if redis.call('HLEN', KEYS[1]) > 1 then return 'others' end
    redis.call('DEL', KEYS[1])
    return redis.call('PUBLISH', KEYS[3], 0)";

const WRITE: &str = "-- writeLock.lock
    local mode = redis.call('HGET', KEYS[1], 'mode')
    if not mode then
        redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[2] .. ':write', 1)
        return redis.call('PEXPIRE', KEYS[1], ARGV[1])
    end
    if redis.call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 0 then return 'held' end
    redis.call('HINCRBY', KEYS[1], ARGV[2] .. ':write', 1)
    return redis.call('PEXPIRE', KEYS[1], ARGV[1] + redis.call('PTTL', KEYS[1]))";

const WRITE_UNLOCK: &str = "-- writeLock.unlock
    if redis.call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 0 then return 'not held' end
    if redis.call('HINCRBY', KEYS[1], ARGV[2] .. ':write', -1) > 0 then return 'nested' end
    redis.call('HDEL', KEYS[1], ARGV[2] .. ':write')
    if redis.call('HLEN', KEYS[1]) == 1 then
        redis.call('DEL', KEYS[1])
    else
        redis.call('HSET', KEYS[1], 'mode', 'read')
    end
    return redis.call('PUBLISH', KEYS[3], 1)";

/// KEYS and ARGV as for Redisson's.
const TAKE: &str = "-- permits.take
    local mode = redis.call('HGET', KEYS[1], 'mode')
    if not mode and redis.call('EXISTS', KEYS[1]) == 1 then return 'another' end
    local asked, limit, out = (mode or 'permits 2 2 0'):match('^permits (%d+) (%d+) (%d+)$')
    if not asked or out + 1 > tonumber(limit)
        or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then return 'held' end
    local now = redis.call('TIME')
    local ends = now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[1]
    redis.call('HSET', KEYS[1], 'mode', 'permits ' .. asked .. ' ' .. limit .. ' ' .. out + 1,
        ARGV[2], '1@' .. string.format('%.0f', ends))
    local left = redis.call('PTTL', KEYS[1])
    return redis.call('PEXPIRE', KEYS[1], math.max(left, ARGV[1]))";

const GIVE: &str = "-- permits.give
    local its = redis.call('HGET', KEYS[1], ARGV[2])
    local permits = its and its:match('^(%d+)@%d+$')
    local mode = redis.call('HGET', KEYS[1], 'mode') or ''
    local asked, limit, out = mode:match('^permits (%d+) (%d+) (%d+)$')
    if not permits or not asked then return 'not held' end
    if redis.call('HLEN', KEYS[1]) > 2 then
        redis.call('HSET', KEYS[1], 'mode', 'permits ' .. asked .. ' ' .. limit .. ' ' ..
            out - permits)
        return redis.call('HDEL', KEYS[1], ARGV[2])
    end
    redis.call('DEL', KEYS[1])
    return redis.call('PUBLISH', KEYS[4], 0)";

const LENGTHEN: &str = "-- permits.lengthen
    local its = redis.call('HGET', KEYS[1], ARGV[2])
    local permits = its and its:match('^([1-9]%d*)@%d+$')
    if not permits then return 'not held' end
    local now = redis.call('TIME')
    local ends = now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[1]
    redis.call('HSET', KEYS[1], ARGV[2], permits .. '@' .. string.format('%.0f', ends))
    local left = redis.call('PTTL', KEYS[1])
    return redis.call('PEXPIRE', KEYS[1], math.max(left, ARGV[1]))";

/// What somebody does who knows nothing of rlock.
pub fn step(random: &mut Random, scene: &Scene) -> Step {
    let key = scene.lock(random);
    let owner = scene.owner(random);
    let other = scene.lock(random);
    let lease = match random.one_in(8) {
        true => SHORT,
        false => random.of(&LEASES),
    };
    let by_permits = 6 * usize::from(scene.has_permits());
    let kinds: &[(usize, _)] = match scene.spoils_counters {
        true => &[(1, QUEUE), (2, COUNTER), (2, SPOILED_COUNTER)],
        false => &[
            (6, BY_HAND),
            (3, OF_REDISSON),
            (3, COUNTER),
            (3, QUEUE),
            (by_permits, PERMITS),
            (by_permits, BY_LAYOUT),
        ],
    };
    let kind = *random.weighed(kinds);
    let what = *random.weighed(kind);
    if kind == OF_REDISSON || kind == BY_LAYOUT {
        let lease_key = lease_key(&key, &owner, 0);
        let leases = lease_key[..lease_key.len() - 1].to_vec();
        let channel = |kind: &str| [kind.as_bytes(), &tagged(&key)].concat();
        let words = vec![
            b"EVAL".to_vec(),
            what.into(),
            b"4".to_vec(),
            key.clone(),
            leases,
            channel("redisson_rwlock:"),
            channel("redisson_lock__channel:"),
            lease.into(),
            owner,
        ];
        return Step::Foreign {
            words,
            changes: vec![key],
        };
    }
    let tag = tagged(&key);
    let with = [
        ("KEY", &key),
        ("OTHER", &other),
        ("OWNER", &owner),
        ("WRITER", &[&owner, b":write".as_slice()].concat()),
        ("LEASE", &lease_key(&key, &owner, *random.of(&[1, 2]))),
        (
            "COUNTER",
            &[b"redisson_lock_token:".as_slice(), &tag].concat(),
        ),
        (
            "QUEUE",
            &[b"redisson_lock_queue:".as_slice(), &tag].concat(),
        ),
        (
            "TIMEOUTS",
            &[b"redisson_lock_timeout:".as_slice(), &tag].concat(),
        ),
        ("POOL", &b"permits 2 3 2".to_vec()),
        ("MS", &lease.into()),
        ("SOON", &SHORT.into()),
    ];
    let words = filled(what, &with);
    let changes = match what {
        "FLUSHALL" => scene.locks.clone(),
        // What lies beside a lock says nothing of who holds it.
        _ if [COUNTER, SPOILED_COUNTER, QUEUE].contains(&kind) => Vec::new(),
        _ => vec![key, other],
    };
    Step::Foreign { words, changes }
}
