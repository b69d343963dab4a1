//! The keyspace in memory, for tests of the core outside a server. It holds plain
//! hashes with an optional deadline, as the server does, and carries out the
//! core's writes to the letter.

use std::collections::BTreeMap;

use super::{Effect, Foreign, Holder, Key, Keyspace, Kind, Look, Mode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Text,
}

#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub keys: BTreeMap<Key, (Value, Option<i64>)>,
    /// The wall clock in ms.
    pub now_ms: i64,
}

impl Memory {
    /// Carries out the writes among the effects.
    pub fn apply(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Take { key, owner, at } => {
                    let fields = BTreeMap::from([(owner.to_vec(), b"1".to_vec())]);
                    let taken = self
                        .keys
                        .insert(key.clone(), (Value::Hash(fields), Some(*at)));
                    assert!(taken.is_none(), "took a lock that was not free: {key:?}");
                }
                Effect::Count {
                    key, owner, holds, ..
                } => match self.keys.get_mut(key) {
                    Some((Value::Hash(fields), _)) => {
                        let old = fields.insert(owner.to_vec(), holds.to_string().into_bytes());
                        assert!(old.is_some(), "counted holds that are not there: {key:?}");
                    }
                    other => panic!("counted holds of {other:?}"),
                },
                Effect::ExpireAt { key, at } => match self.keys.get_mut(key) {
                    Some((_, expires)) => *expires = Some(*at),
                    None => panic!("gave a lease to a free lock: {key:?}"),
                },
                Effect::Delete { key } => {
                    assert!(self.keys.remove(key).is_some(), "freed a free lock");
                }
                Effect::Tell { .. } | Effect::Wake { .. } | Effect::Answer { .. } => {}
            }
        }
    }

    fn live(&mut self, key: &Key) -> Option<&(Value, Option<i64>)> {
        let now = self.now_ms;
        let run_out = |(_, at): &(Value, Option<i64>)| at.is_some_and(|at| now > at);
        if self.keys.get(key).is_some_and(run_out) {
            self.keys.remove(key);
        }
        self.keys.get(key)
    }
}

fn count(value: &[u8]) -> Option<i64> {
    let holds: i64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (holds > 0).then_some(holds)
}

impl Keyspace for Memory {
    fn look(&mut self, key: &Key, owner: &[u8]) -> Look {
        let there = self.keys.contains_key(key);
        let Some((value, expires)) = self.live(key) else {
            return Look {
                ran_out: there,
                ..Look::FREE
            };
        };
        let foreign = |why| Look {
            kind: Kind::Foreign(why),
            holds: 0,
            shared: None,
            expires: *expires,
            ran_out: false,
        };
        let Value::Hash(fields) = value else {
            return foreign(Foreign::OtherType);
        };
        let mut counts = fields.values().map(|value| count(value));
        match (counts.next(), counts.next()) {
            (Some(Some(_)), None) => Look {
                kind: Kind::Plain,
                holds: fields.get(owner).and_then(|v| count(v)).unwrap_or(0),
                shared: None,
                expires: *expires,
                ran_out: false,
            },
            _ => foreign(Foreign::OtherHash),
        }
    }

    fn holders(&mut self, key: &Key) -> Vec<Holder> {
        match self.live(key) {
            Some((Value::Hash(fields), _)) => fields
                .iter()
                .filter_map(|(owner, value)| {
                    Some(Holder {
                        owner: owner.clone(),
                        mode: Mode::Exclusive,
                        holds: count(value)?,
                    })
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}
