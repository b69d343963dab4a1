//! RLOCK.LIST: which locks are held, page by page.

mod filters;
mod pages;
mod shown;

use std::collections::BTreeMap;

use redis::Value;

use crate::support::{list, map, text, Ask, RawClient, Request};

/// One holder: its key, its owner, its mode.
type Held = (Vec<u8>, Vec<u8>, String);

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::BulkString(bytes) => bytes.clone(),
        other => panic!("no text: {other:?}"),
    }
}

/// A reply: the cursor, and the maps.
#[track_caller]
fn page(reply: Value) -> (Vec<u8>, Vec<BTreeMap<String, Value>>) {
    let mut parts = list(reply);
    assert_eq!(parts.len(), 2, "{parts:?}");
    let maps = list(parts.remove(1)).into_iter().map(map).collect();
    (bytes(&parts[0]), maps)
}

fn held(fields: &BTreeMap<String, Value>) -> Held {
    let names: Vec<_> = fields.keys().map(String::as_str).collect();
    let all = [
        "held-ms",
        "holds",
        "key",
        "mode",
        "owner",
        "presumed",
        "remaining-ms",
        "token",
        "wanted-ms",
        "watchdog",
    ];
    assert_eq!(names, all);
    let mode = text(fields["mode"].clone());
    (bytes(&fields["key"]), bytes(&fields["owner"]), mode)
}

/// A page behind this cursor, with these words: the next cursor, and who is told.
#[track_caller]
fn after(client: &mut RawClient, cursor: &[u8], words: &str) -> (Vec<u8>, Vec<Held>) {
    let mut request = vec![b"RLOCK.LIST".to_vec(), b"CURSOR".to_vec(), cursor.to_vec()];
    request.extend(words.args());
    let (next, maps) = page(client.ask(&request));
    (next, maps.iter().map(held).collect())
}

/// All pages, with something done behind each; and how many there were.
#[track_caller]
fn pages(client: &mut RawClient, words: &str, mut then: impl FnMut(usize)) -> (Vec<Held>, usize) {
    let (mut cursor, mut all) = (b"0".to_vec(), Vec::new());
    for number in 1.. {
        let (next, found) = after(client, &cursor, words);
        all.extend(found);
        if next == b"0" {
            return (all, number);
        }
        then(number);
        cursor = next;
    }
    unreachable!()
}

/// The keys and owners of all pages, in order, as one would write them: `a=x b=y`.
#[track_caller]
fn listed(client: &mut RawClient, words: &str) -> String {
    let (all, _) = pages(client, words, |_| ());
    let line = |(key, owner, _): &Held| format!("{}={}", key.escape_ascii(), owner.escape_ascii());
    let mut all: Vec<_> = all.iter().map(line).collect();
    all.sort();
    all.join(" ")
}
