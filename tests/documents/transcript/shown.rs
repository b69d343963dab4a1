//! A reply as `redis-cli` shows it.

use redis::{PushKind, Value};

use crate::support::error;

pub fn shown(reply: &Value) -> Vec<String> {
    match reply {
        Value::Nil => vec!["(nil)".to_owned()],
        Value::Okay => vec!["OK".to_owned()],
        Value::Int(number) => vec![format!("(integer) {number}")],
        Value::SimpleString(text) => vec![text.clone()],
        Value::VerbatimString { text, .. } => text.lines().map(str::to_owned).collect(),
        Value::BulkString(bytes) => {
            let text = bytes.escape_ascii().to_string().replace("\\'", "'");
            vec![format!("\"{text}\"")]
        }
        Value::ServerError(_) => vec![format!("(error) {}", error(reply.clone()))],
        Value::Array(values) => list(values),
        Value::Push { kind, data } => {
            let kind = Value::BulkString(pushed(kind).into());
            list(&[&[kind], &data[..]].concat())
        }
        Value::Map(pairs) => map(pairs),
        other => panic!("no transcript has this yet: {other:?}"),
    }
}

fn pushed(kind: &PushKind) -> &str {
    match kind {
        PushKind::Message => "message",
        PushKind::Subscribe => "subscribe",
        other => panic!("no transcript has this yet: {other:?}"),
    }
}

fn list(values: &[Value]) -> Vec<String> {
    if values.is_empty() {
        return vec!["(empty array)".to_owned()];
    }
    let entries = values.iter().map(shown);
    numbered(')', entries.collect())
}

fn map(pairs: &[(Value, Value)]) -> Vec<String> {
    let entry = |(key, value): &(Value, Value)| {
        let key = shown(key).concat();
        let value = shown(value);
        match value.len() {
            1 => vec![format!("{key} => {}", value[0])],
            _ => [vec![format!("{key} =>")], value].concat(),
        }
    };
    numbered('#', pairs.iter().map(entry).collect())
}

fn numbered(sign: char, entries: Vec<Vec<String>>) -> Vec<String> {
    let digits = entries.len().to_string().len();
    let indent = " ".repeat(digits + 2);
    let mut lines = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        for (at, line) in entry.into_iter().enumerate() {
            lines.push(match at {
                0 => format!("{:>digits$}{sign} {line}", index + 1),
                _ => format!("{indent}{line}"),
            });
        }
    }
    lines
}
