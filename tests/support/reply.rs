//! Replies, taken apart. Each of these panics at a reply of another kind.

use std::collections::BTreeMap;

use redis::Value;

#[track_caller]
pub fn int(reply: Value) -> i64 {
    match reply {
        Value::Int(number) => number,
        other => panic!("no integer: {other:?}"),
    }
}

/// An integer, or null.
#[track_caller]
pub fn int_or_none(reply: Value) -> Option<i64> {
    match reply {
        Value::Nil => None,
        other => Some(int(other)),
    }
}

/// A token, which is microseconds since 1970 or more.
#[track_caller]
pub fn token(reply: Value) -> i64 {
    let token = int(reply);
    assert!(token > 1_600_000_000_000_000, "{token} is no token");
    token
}

#[track_caller]
pub fn text(reply: Value) -> String {
    match reply {
        Value::BulkString(bytes) => String::from_utf8(bytes).expect("text"),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text,
        Value::Okay => "OK".to_owned(),
        other => panic!("no text: {other:?}"),
    }
}

#[track_caller]
pub fn list(reply: Value) -> Vec<Value> {
    match reply {
        Value::Array(values) | Value::Set(values) => values,
        other => panic!("no list: {other:?}"),
    }
}

/// A map as RESP2 and RESP3 write it.
#[track_caller]
pub fn map(reply: Value) -> BTreeMap<String, Value> {
    match reply {
        Value::Map(pairs) => pairs.into_iter().map(|(k, v)| (text(k), v)).collect(),
        Value::Array(flat) => flat
            .chunks(2)
            .map(|pair| (text(pair[0].clone()), pair[1].clone()))
            .collect(),
        other => panic!("no map: {other:?}"),
    }
}

/// The line of an error.
#[track_caller]
pub fn error(reply: Value) -> String {
    match reply {
        Value::ServerError(error) => match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        },
        other => panic!("no error: {other:?}"),
    }
}

/// The first word of an error.
#[track_caller]
pub fn code(reply: &Value) -> String {
    match reply {
        Value::ServerError(error) => error.code().to_owned(),
        other => panic!("no error: {other:?}"),
    }
}

pub fn pong() -> Value {
    Value::SimpleString("PONG".to_owned())
}

pub fn bulk(text: impl AsRef<[u8]>) -> Value {
    Value::BulkString(text.as_ref().to_vec())
}
