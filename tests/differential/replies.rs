//! In what two replies to the same command differ.
//!
//! What may differ:
//! - Tokens: what they tell is compared (`tokens`), and so they are in RLOCK.INFO.
//! - The order of the fields in the maps of RLOCK.INFO: Lua's tables have none.
//! - How many permits are available, in RLOCK.INFO of a lock that somebody has changed.
//! - Times in RLOCK.INFO: by the time in which both servers were asked.
//! - A number of keys that is no number, or greater than the number of arguments,
//!   is refused by the server before the library sees it: an error is an error.

use redis::Value;

use super::step::Bytes;
use crate::support::error;

/// What the two servers said, or a map of theirs has under one name.
pub type Two<'a> = [&'a Value; 2];

/// Whether both are the same error, or none is one.
pub fn same_errors(replies: Two<'_>, words: &[Bytes]) -> Result<bool, String> {
    let errors = replies.map(|reply| match reply {
        Value::ServerError(_) => Some(error(reply.clone())),
        _ => None,
    });
    match errors {
        [None, None] => Ok(false),
        [Some(one), Some(other)] if one == other => Ok(true),
        [Some(one), Some(other)] if counts_are_bad(words) => {
            let general = |line: &String| line.starts_with("ERR ");
            match general(&one) && general(&other) {
                true => Ok(true),
                false => Err(format!("{one}\n  but {other}")),
            }
        }
        _ => Err(format!("{:?}\n  but {:?}", replies[0], replies[1])),
    }
}

/// Whether the server refuses the number of keys by itself.
fn counts_are_bad(words: &[Bytes]) -> bool {
    let Some((name, args)) = words.split_first() else {
        return false;
    };
    if !name.to_ascii_uppercase().starts_with(b"RLOCK.M") {
        return false;
    }
    let count = args.first().and_then(|text| std::str::from_utf8(text).ok());
    let count: Option<usize> = count.and_then(|text| text.parse().ok());
    let plain = |text: &Bytes| {
        let digits = text.iter().all(u8::is_ascii_digit);
        digits && (text == b"0" || !text.starts_with(b"0"))
    };
    let plain = args.first().is_some_and(plain);
    !(plain && count.is_some_and(|count| count < args.len()))
}

/// What is known of the holds that replies of RLOCK.INFO tell of.
pub struct Holds<'a> {
    /// How much moments may differ; the time between two of them twice as much.
    pub slack: i64,
    /// Whether both servers know the owner's hold.
    pub known: &'a dyn Fn(&Bytes) -> bool,
    /// Somebody has changed the lock: one may not have counted again what is out.
    pub changed: bool,
    /// Whether two tokens tell the same.
    pub same_token: &'a dyn Fn([i64; 2]) -> bool,
}

/// Walks through two replies of RLOCK.INFO and says in what they differ.
pub fn info(replies: Two<'_>, holds: &Holds<'_>) -> Result<(), String> {
    let differ = || Err(format!("{:?}\n  but {:?}", replies[0], replies[1]));
    let (Some(one), Some(other)) = (pairs(replies[0]), pairs(replies[1])) else {
        return differ();
    };
    let names = |pairs: &[(Value, Value)]| -> Vec<Value> {
        pairs.iter().map(|(name, _)| name.clone()).collect()
    };
    // RESP3 has maps, and then both are to be maps.
    let same_form = std::mem::discriminant(replies[0]) == std::mem::discriminant(replies[1]);
    if !same_form || names(&one) != names(&other) {
        return differ();
    }
    let owner = one.iter().find_map(|(name, value)| match value {
        Value::BulkString(owner) if is(name, "owner") => Some(owner.clone()),
        _ => None,
    });
    let owner = owner.unwrap_or_default();
    // More permits go on with a hold, which one may have known and the other not.
    let since_differs = holds.changed && one.iter().any(|(name, _)| is(name, "permits"));
    for ((name, a), (_, b)) in one.iter().zip(&other) {
        let same = match (a, b) {
            (Value::Array(a), Value::Array(b)) if is(name, "holders") && a.len() == b.len() => {
                for pair in a.iter().zip(b) {
                    info([pair.0, pair.1], holds)?;
                }
                true
            }
            (Value::Int(a), Value::Int(b)) if is(name, "remaining-ms") => {
                (a - b).abs() <= 2 * holds.slack
            }
            (Value::Nil | Value::Int(_), Value::Nil | Value::Int(_))
                if (is(name, "held-ms") || is(name, "token")) && !(holds.known)(&owner) =>
            {
                true
            }
            (Value::Int(_), Value::Int(_)) if is(name, "available") && holds.changed => true,
            (Value::Int(_), Value::Int(_)) if is(name, "held-ms") && since_differs => true,
            (Value::Int(a), Value::Int(b)) if is(name, "held-ms") => {
                (a - b).abs() <= 2 * holds.slack
            }
            (Value::Int(a), Value::Int(b)) if is(name, "token") => (holds.same_token)([*a, *b]),
            _ => a == b,
        };
        if !same {
            return Err(format!("{name:?}: {a:?}\n  but {b:?}"));
        }
    }
    Ok(())
}

fn is(name: &Value, text: &str) -> bool {
    matches!(name, Value::BulkString(bytes) if bytes == text.as_bytes())
        || matches!(name, Value::SimpleString(name) if name == text)
}

/// A map, as RESP2 and RESP3 write it, by name.
fn pairs(value: &Value) -> Option<Vec<(Value, Value)>> {
    let mut pairs: Vec<(Value, Value)> = match value {
        Value::Map(pairs) => pairs.clone(),
        Value::Array(flat) if flat.len() % 2 == 0 => {
            let pairs = flat.chunks(2);
            pairs.map(|two| (two[0].clone(), two[1].clone())).collect()
        }
        _ => return None,
    };
    pairs.sort_by_key(|(name, _)| format!("{name:?}"));
    Some(pairs)
}
