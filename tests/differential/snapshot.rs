//! All keys of a server at one moment, and in what two such pictures differ.
//!
//! These may differ:
//! - The fields of readers that are dead (all lease keys of that reader are gone) in
//!   the hash of a read/write lock: the module removes them when the lease ends, the
//!   library when it is called. A hash of such fields only, with a TTL, is as good as
//!   no hash.
//! - Lease keys that belong to no reader any more because the hash ended, or was
//!   changed, behind rlock's back: they end by their own TTL, or before.
//! - When such a hash ends: it lives as long as the longest of its readers, also of
//!   those that died before the server looked. So does one with permits.
//! - When a key ends, by the time in which both servers were asked: `slack`.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use super::pools;
use super::side::bytes;
use super::step::{shown, Bytes};

/// Everything in the database: name, type, when it ends, content.
pub const SCRIPT: &str = "
    local reads = {
        string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1},
        set = {'SMEMBERS'}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}}
    local all = {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
        local kind = redis.call('TYPE', key).ok
        local read = reads[kind]
        local content = redis.call(read[1], key, unpack(read, 2))
        if type(content) == 'string' then content = {content} end
        all[#all + 1] = {key, kind, redis.call('PEXPIRETIME', key), content}
    end
    return all";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub kind: Bytes,
    /// When it ends, ms since 1970; none: never.
    pub ends: Option<i64>,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Fields(BTreeMap<Bytes, Bytes>),
    Values(Vec<Bytes>),
}

impl Item {
    /// The fields of a lock with permits.
    pub fn pool(&self) -> Option<&BTreeMap<Bytes, Bytes>> {
        match &self.content {
            Content::Fields(fields) => Some(fields).filter(|fields| pools::is_one(fields)),
            Content::Values(_) => None,
        }
    }

    /// When owners' permits end.
    fn permits_end(&self) -> impl Iterator<Item = i64> + '_ {
        self.pool().into_iter().flat_map(pools::ends)
    }

    /// The fields of a read/write lock, as far as `mode` tells.
    pub fn shared(&self) -> Option<&BTreeMap<Bytes, Bytes>> {
        let Content::Fields(fields) = &self.content else {
            return None;
        };
        let mode = fields.get(b"mode".as_slice())?.as_slice();
        [b"read".as_slice(), b"write"]
            .contains(&mode)
            .then_some(fields)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<Bytes, Item>);

impl Snapshot {
    /// From what [`SCRIPT`] returns.
    pub fn new(value: Value) -> Self {
        let list = |value| match value {
            Value::Array(values) => values,
            other => panic!("no list: {other:?}"),
        };
        let items = list(value).into_iter().map(|item| {
            let [name, kind, ends, content] = <[Value; 4]>::try_from(list(item)).expect("four");
            let Value::Int(ends) = ends else {
                panic!("no time: {ends:?}");
            };
            let kind = bytes(kind);
            let values: Vec<Bytes> = list(content).into_iter().map(bytes).collect();
            let content = match kind.as_slice() {
                b"hash" => Content::Fields(
                    values
                        .chunks(2)
                        .map(|pair| (pair[0].clone(), pair[1].clone()))
                        .collect(),
                ),
                _ => Content::Values(values),
            };
            let ends = (ends >= 0).then_some(ends);
            let item = Item {
                kind,
                ends,
                content,
            };
            (bytes(name), item)
        });
        Self(items.collect())
    }

    /// The number in a string.
    pub fn number(&self, name: &[u8]) -> Option<i64> {
        match &self.0.get(name)?.content {
            Content::Values(values) if values.len() == 1 => {
                std::str::from_utf8(&values[0]).ok()?.parse().ok()
            }
            _ => None,
        }
    }

    /// The last moment, before this one, at which a key ends.
    pub fn last_end_before(&self, at: i64) -> Option<i64> {
        let items = self.0.values();
        let ends = items.flat_map(|item| item.ends.into_iter().chain(item.permits_end()));
        ends.filter(|end| *end < at).max()
    }

    /// The locks in which permits have run out and are still there.
    pub fn dead_permits(&self, now: i64) -> impl Iterator<Item = &Bytes> {
        let is_dead = move |item: &Item| item.permits_end().any(|end| end < now);
        let pools = self.0.iter();
        pools
            .filter(move |(_, item)| is_dead(item))
            .map(|(lock, _)| lock)
    }

    /// A lock that says fewer permits are out than its owners have.
    pub fn short_pool(&self) -> Option<&Bytes> {
        let mut pools = self.0.iter();
        let is_short = |item: &Item| item.pool().is_some_and(pools::is_short);
        pools.find(|(_, item)| is_short(item)).map(|(lock, _)| lock)
    }

    /// The locks that end until then, or on which leases of readers or of permits do.
    pub fn locks_ending(&self, until: i64) -> impl Iterator<Item = &Bytes> {
        let ends = move |item: &Item| item.ends.is_some_and(|at| at <= until);
        let locks = self.0.iter();
        let locks = locks.filter(|(_, item)| matches!(item.content, Content::Fields(_)));
        let ending = locks.filter(move |(lock, item)| {
            let prefix = lease_prefix(lock);
            let mut leases = self.0.iter().filter(|(key, _)| key.starts_with(&prefix));
            ends(item)
                || leases.any(|(_, item)| ends(item))
                || item.permits_end().any(|at| at <= until)
        });
        ending.map(|(lock, _)| lock)
    }

    /// The locks of several that go on then, though leases of some end.
    pub fn outliving_readers(&self, until: i64) -> impl Iterator<Item = &Bytes> {
        let ending = self.locks_ending(until);
        ending.filter(move |lock| {
            let item = &self.0[*lock];
            let of_several = item.shared().or(item.pool()).is_some();
            of_several && item.ends.is_none_or(|at| at > until)
        })
    }

    /// The same without what is left of the dead.
    pub fn without_dead(&self, may: &Dead<'_>) -> Self {
        let mut items = self.0.clone();
        items.retain(|name, _| !may.orphans.contains(name));
        for (name, item) in &self.0 {
            let mut fields = match (item.shared(), item.pool()) {
                (Some(fields), _) => fields.clone(),
                (_, Some(pool)) => pools::without_dead(pool, may.now, (may.recount)(name)),
                _ => continue,
            };
            fields.retain(|owner, holds| {
                item.pool().is_some()
                    || owner == b"mode"
                    || owner.ends_with(b":write")
                    || self.lives(name, owner, holds)
            });
            if fields.len() == 1 && item.ends.is_some() {
                items.remove(name);
            } else if let Some(item) = items.get_mut(name) {
                item.content = Content::Fields(fields);
            }
        }
        Self(items)
    }

    /// The locks in whose hash dead ones are left.
    pub fn with_dead(&self, now: i64) -> impl Iterator<Item = &Bytes> + use<'_> {
        let clean = self.without_dead(&Dead {
            now,
            orphans: &BTreeSet::new(),
            recount: &|_| false,
        });
        let names = self.0.iter();
        let dead = names.filter(move |(name, item)| clean.0.get(*name) != Some(*item));
        dead.map(|(name, _)| name)
    }

    /// The lease keys that belong to no reader after the leases that end until then
    /// have ended.
    pub fn orphans(&self, until: i64) -> Vec<Bytes> {
        let mut of_readers = BTreeSet::new();
        for (lock, item) in &self.0 {
            let Content::Fields(fields) = &item.content else {
                continue;
            };
            if item.ends.is_some_and(|at| at <= until) || !fields.contains_key(b"mode".as_slice()) {
                continue;
            }
            for (owner, holds) in fields {
                of_readers.extend(lease_keys(lock, owner, holds));
            }
        }
        let lease_keys = self.0.keys().filter(|name| is_lease_key(name));
        lease_keys
            .filter(|name| !of_readers.contains(*name))
            .cloned()
            .collect()
    }

    /// Whether a reader has one of its lease keys.
    pub fn lives(&self, lock: &[u8], owner: &[u8], holds: &[u8]) -> bool {
        // What is no count of holds is no reader.
        !is_count(holds) || self.leases(lock, owner, holds).next().is_some()
    }

    /// When the lease keys of a reader end, as far as they are there.
    pub fn leases<'a>(
        &'a self,
        lock: &'a [u8],
        owner: &'a [u8],
        holds: &[u8],
    ) -> impl Iterator<Item = Option<i64>> + 'a {
        let items = lease_keys(lock, owner, holds).filter_map(|name| self.0.get(&name));
        // The lock's name, or Redisson's 1: the length is looked at.
        let right = |item: &&Item| match &item.content {
            Content::Values(value) if item.kind == b"string" => {
                [lock.len(), 1].contains(&value[0].len())
            }
            _ => false,
        };
        items.filter(right).map(|item| item.ends)
    }

    /// Which keys differ, and how.
    pub fn differences(&self, other: &Self, may: &May<'_>) -> BTreeMap<Bytes, String> {
        let names: BTreeSet<&Bytes> = self.0.keys().chain(other.0.keys()).collect();
        let mut found = BTreeMap::new();
        for name in names {
            let items = [self.0.get(name), other.0.get(name)];
            let same = match items {
                [Some(a), Some(b)] => {
                    let content = match (&a.content, &b.content) {
                        (Content::Values(a), Content::Values(b)) if name.starts_with(COUNTER) => {
                            a.len() == b.len()
                                && a.iter().zip(b).all(|(a, b)| (may.same_token)(name, [a, b]))
                        }
                        (Content::Fields(a), Content::Fields(b)) => pools::same(a, b, may.slack),
                        (a, b) => a == b,
                    };
                    a.kind == b.kind && content && may.end(name, a.ends, b.ends)
                }
                _ => false,
            };
            if !same {
                let [a, b] = items.map(|item| item.map_or("nothing".to_owned(), Item::to_string));
                found.insert(name.clone(), format!("{}: {a}\n  but {b}", shown(name)));
            }
        }
        found
    }
}

/// What is left of whom nobody counts any more.
pub struct Dead<'a> {
    /// Permits whose deadline was before this have run out.
    pub now: i64,
    /// Lease keys of no reader.
    pub orphans: &'a BTreeSet<Bytes>,
    /// Locks of which it may be known or not how many permits are out.
    pub recount: &'a dyn Fn(&Bytes) -> bool,
}

/// What may differ.
pub struct May<'a> {
    /// By how much, ms.
    pub slack: i64,
    /// Locks that may live longer than their readers.
    pub stretched: &'a BTreeSet<Bytes>,
    /// Whether what stands in a counter of tokens says the same.
    pub same_token: &'a dyn Fn(&Bytes, [&Bytes; 2]) -> bool,
}

impl May<'_> {
    fn end(&self, name: &Bytes, one: Option<i64>, other: Option<i64>) -> bool {
        match (one, other) {
            (Some(_), Some(_)) if self.stretched.contains(name) => true,
            (Some(one), Some(other)) => (one - other).abs() <= self.slack,
            (one, other) => one == other,
        }
    }
}

const LEASE: &[u8] = b":rwlock_timeout:";
pub const COUNTER: &[u8] = b"redisson_lock_token:";

/// A name as it stands in the names of what belongs to a lock.
pub fn tagged(lock: &[u8]) -> Bytes {
    match lock.contains(&b'{') {
        true => lock.to_vec(),
        false => [b"{", lock, b"}"].concat(),
    }
}

/// What the names of a lock's lease keys begin with.
pub fn lease_prefix(lock: &[u8]) -> Bytes {
    [&tagged(lock), b":".as_slice()].concat()
}

pub fn lease_key(lock: &[u8], owner: &[u8], index: i64) -> Bytes {
    [
        &lease_prefix(lock),
        owner,
        LEASE,
        index.to_string().as_bytes(),
    ]
    .concat()
}

/// The lease keys of a reader with so many holds.
pub fn lease_keys<'a>(
    lock: &'a [u8],
    owner: &'a [u8],
    holds: &[u8],
) -> impl Iterator<Item = Bytes> + 'a {
    let holds = std::str::from_utf8(holds).unwrap_or_default().parse();
    let indexes = 1..=i64::min(holds.unwrap_or(0), 1024);
    indexes.map(move |index| lease_key(lock, owner, index))
}

/// Whether a value counts holds.
pub fn is_count(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value).unwrap_or_default();
    text.starts_with(|digit| matches!(digit, '1'..='9')) && text.parse::<i64>().is_ok()
}

fn is_lease_key(name: &[u8]) -> bool {
    name.windows(LEASE.len()).any(|part| part == LEASE)
}

impl std::fmt::Display for Item {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = String::from_utf8_lossy(&self.kind);
        write!(out, "{kind}")?;
        match &self.content {
            Content::Fields(fields) => {
                for (field, value) in fields {
                    write!(out, " {}={}", shown(field), shown(value))?;
                }
            }
            Content::Values(values) => {
                for value in values {
                    write!(out, " {}", shown(value))?;
                }
            }
        }
        match self.ends {
            Some(at) => write!(out, " until {at}"),
            None => write!(out, " for ever"),
        }
    }
}
