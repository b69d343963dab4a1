//! The keyspace in memory, for tests of the core outside a server. It holds plain
//! hashes with an optional deadline, as the server does, and carries out the
//! core's writes to the letter.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::{self, Hash};
use super::{
    leases_looked_at, Act, Address, ClientId, Counter, Foreign, Hint, Holder, Key, Keyspace, Kind,
    Lease, Look, Mode, Part, Pool, Slot, Token, WallMs, Write,
};
use crate::redisson;

pub type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Hash(Fields),
    Text,
    Number(i64),
}

#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub keys: BTreeMap<Key, (Value, Option<WallMs>)>,
    pub now_ms: WallMs,
    /// It runs out as soon as it is to be prolonged.
    pub vanishing: Option<Key>,
    /// Where the slot of all keys is.
    pub slot: Slot,
    /// How often a key was looked at.
    pub looks: usize,
    /// How many holders were read by going through a hash.
    pub read: usize,
    /// In so many parts the fields of a lock with permits are read, where there are several.
    pub parts: u64,
    /// These connections hear nothing.
    pub deaf: BTreeSet<ClientId>,
    /// The rights of these connections' users were taken away.
    pub without_rights: BTreeSet<ClientId>,
}

impl Memory {
    fn write_lease(&mut self, key: &Key, write: &Write) {
        match write {
            Write::Lease { owner, index, at } => {
                let lease = lease_key(key, owner, *index);
                self.keys.insert(lease, (Value::Text, *at));
            }
            Write::LeaseAt { owner, index, at } => {
                if let Some((_, end)) = self.keys.get_mut(&lease_key(key, owner, *index)) {
                    *end = Some(*at);
                }
            }
            Write::EndLease { owner, index } => {
                self.keys.remove(&lease_key(key, owner, *index));
            }
            _ => {}
        }
    }

    fn write_permit(
        &mut self,
        key: &Key,
        owner: &[u8],
        held: Option<(i64, WallMs)>,
        pool: Option<Pool>,
    ) {
        let empty = || (Value::Hash(Fields::new()), None);
        self.keys.entry(key.clone()).or_insert_with(empty);
        let (fields, _) = self.hash(key);
        if let Some(pool) = pool {
            let text = kind::pool_text(pool).into_bytes();
            fields.insert(kind::MODE.to_vec(), text);
        }
        let was = match held {
            Some((permits, ends)) => {
                let text = kind::permit_text(permits, ends).into_bytes();
                fields.insert(owner.to_vec(), text);
                None
            }
            None => Some(fields.remove(owner)),
        };
        assert_ne!(was, Some(None), "ended what is not there: {owner:?}");
        assert!(fields.contains_key(kind::MODE), "of no lock: {owner:?}");
    }

    fn live(&mut self, key: &Key) -> Option<&(Value, Option<WallMs>)> {
        let now = self.now_ms;
        let run_out = |(_, at): &(Value, Option<WallMs>)| at.is_some_and(|at| now > at);
        if self.keys.get(key).is_some_and(run_out) {
            self.keys.remove(key);
        }
        self.keys.get(key)
    }

    /// The hash of a lock that is there, and its end.
    fn hash(&mut self, key: &Key) -> (&mut Fields, &mut Option<WallMs>) {
        match self.keys.get_mut(key) {
            Some((Value::Hash(fields), at)) => (fields, at),
            other => panic!("{key:?} is no hash but {other:?}"),
        }
    }

    fn lease_of(&mut self, key: &Key, owner: &[u8], holds: i64) -> Lease {
        let missing = match self.slot {
            Slot::Migrating => Lease::Migrating,
            Slot::Ours | Slot::Others => Lease::Gone,
        };
        let lease = |memory: &mut Self, index| match memory.live(&lease_key(key, owner, index)) {
            Some((Value::Text, at)) => Lease::of(*at),
            None => missing,
            _ => Lease::Gone,
        };
        let all = leases_looked_at(holds).map(|index| lease(self, index));
        all.max().unwrap_or(Lease::Gone)
    }
}

/// The lease key of a read hold.
pub fn lease_key(key: &Key, owner: &[u8], index: i64) -> Key {
    Key::new(key.db, &redisson::lease_key(&key.name, owner, index))
}

/// The fencing counter of a lock.
pub fn counter(key: &Key) -> Key {
    Key::new(key.db, &redisson::counter(&key.name))
}

fn field(owner: &[u8], mode: Mode) -> Vec<u8> {
    match mode {
        Mode::Write => kind::writer_field(owner),
        Mode::Exclusive | Mode::Read | Mode::Permits => owner.to_vec(),
    }
}

impl Hash for Fields {
    fn len(&self) -> usize {
        self.len()
    }

    fn field<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.get(name).map(|value| read(value))
    }

    fn some_fields(&self, steps: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.clone().into_iter().take(steps).collect()
    }
}

impl Keyspace for Memory {
    fn look_with_hint(&mut self, key: &Key, owner: &[u8], known: Hint<'_>) -> Look {
        self.looks += 1;
        let there = self.keys.contains_key(key);
        let Some((value, expires)) = self.live(key).cloned() else {
            return Look {
                ran_out: there,
                ..Look::FREE
            };
        };
        let Value::Hash(fields) = value else {
            return Look {
                kind: Kind::Foreign(Foreign::OtherType),
                expires,
                ..Look::FREE
            };
        };
        let look = kind::look_with_hint(&fields, owner, known, || expires);
        if !matches!(look.kind, Kind::ReadWrite(_)) {
            return look;
        }
        Look {
            lease: self.lease_of(key, owner, look.holds),
            ..look
        }
    }

    fn some_holders(&mut self, key: &Key, steps: usize) -> Vec<Holder> {
        let Some((Value::Hash(fields), expires)) = self.live(key).cloned() else {
            return Vec::new();
        };
        let mut holders = kind::holders(&fields, expires, steps);
        self.read += holders.len();
        for holder in holders
            .iter_mut()
            .filter(|holder| holder.mode == Mode::Read)
        {
            holder.lease = self.lease_of(key, &holder.owner, holder.holds);
        }
        holders
    }

    fn some_fields(&mut self, key: &Key, cursor: u64) -> Part {
        let Some((Value::Hash(fields), _)) = self.live(key).cloned() else {
            return Part::default();
        };
        // In parts, whatever comes and goes: by what each name comes to.
        let parts = self.parts.max(1);
        let kind = kind::kind(&fields);
        let part = |name: &[u8]| name.iter().map(|byte| u64::from(*byte)).sum::<u64>() % parts;
        let some = fields.into_iter().filter(|(name, _)| part(name) == cursor);
        Part::of(kind, some, Some(cursor + 1).filter(|next| *next < parts))
    }

    fn is_wrong(&mut self, key: &Key, field: &[u8]) -> bool {
        match self.live(key) {
            Some((Value::Hash(fields), _)) => kind::is_wrong(fields, field),
            _ => false,
        }
    }

    fn may_lease(&mut self, key: &Key, owner: &[u8], index: i64) -> bool {
        let lease = self.live(&lease_key(key, owner, index));
        !matches!(lease, Some((Value::Hash(_), _)))
    }

    fn may(&mut self, client: ClientId, _act: Act<'_>) -> bool {
        !self.without_rights.contains(&client)
    }

    fn counter(&mut self, key: &Key) -> Counter {
        match self.live(&counter(key)) {
            None => Counter::Absent,
            Some((Value::Number(last), _)) => Counter::At(Token(*last)),
            Some(_) => Counter::Unusable,
        }
    }

    fn is_at_hand(&self, _key: &Key) -> bool {
        true
    }

    fn slot_stays(&mut self, _key: &Key) -> bool {
        self.slot != Slot::Migrating
    }

    fn in_cluster(&self) -> bool {
        self.slot != Slot::Ours
    }

    fn slot(&mut self, _key: &Key) -> Slot {
        self.slot
    }

    fn reaches(&mut self, address: &Address) -> bool {
        !self.deaf.contains(&address.client)
    }

    fn write(&mut self, key: &Key, write: &Write) -> bool {
        match write {
            Write::Take { owner, holds, at } => {
                let fields = Fields::from([(owner.to_vec(), holds.to_string().into_bytes())]);
                let value = (Value::Hash(fields), Some(*at));
                let taken = self.keys.insert(key.clone(), value);
                assert!(taken.is_none(), "took a lock that was not free: {key:?}");
            }
            Write::HandOver { from, to, at } => {
                let (fields, end) = self.hash(key);
                let held = Fields::from([(from.to_vec(), b"1".to_vec())]);
                assert_eq!(*fields, held, "hands over what it does not hold: {key:?}");
                *fields = Fields::from([(to.to_vec(), b"1".to_vec())]);
                *end = Some(*at);
            }
            Write::Count {
                owner,
                mode,
                holds,
                by,
            } => {
                let (fields, _) = self.hash(key);
                let old = fields.insert(field(owner, *mode), holds.to_string().into_bytes());
                let old = old.map_or(Some(0), |old| kind::count(&old));
                assert_eq!(old, Some(holds - by), "counted otherwise: {write:?}");
            }
            Write::Drop { owner, mode } => {
                let (fields, _) = self.hash(key);
                let old = fields.remove(&field(owner, *mode));
                assert!(old.is_some(), "dropped what is not there: {write:?}");
                if fields.is_empty() {
                    self.keys.remove(key);
                }
            }
            Write::Permit { owner, held, pool } => self.write_permit(key, owner, *held, *pool),
            Write::SetPool(pool) => {
                let text = kind::pool_text(*pool).into_bytes();
                let was = self.hash(key).0.insert(kind::MODE.to_vec(), text);
                assert!(was.is_some(), "of no lock: {write:?}");
            }
            Write::SetMode(mode) => {
                let empty = || (Value::Hash(Fields::new()), None);
                self.keys.entry(key.clone()).or_insert_with(empty);
                let word = kind::mode_text(*mode).to_vec();
                self.hash(key).0.insert(kind::MODE.to_vec(), word);
            }
            Write::Lease { .. } | Write::LeaseAt { .. } | Write::EndLease { .. } => {
                self.write_lease(key, write);
            }
            Write::Fence { token, until } => {
                let counter = counter(key);
                let end = match self.live(&counter) {
                    Some((_, None)) => None,
                    Some((_, end)) => (*end).max(*until),
                    None => *until,
                };
                self.keys.insert(counter, (Value::Number(token.0), end));
            }
            Write::ExpireAt(_) if self.vanishing.as_ref() == Some(key) => {
                self.vanishing = None;
                self.keys.remove(key);
                return false;
            }
            Write::ExpireAt(at) => *self.hash(key).1 = Some(*at),
            Write::Delete => {
                assert!(self.keys.remove(key).is_some(), "freed a free lock");
            }
        }
        true
    }
}
