//! All keys of a server, byte for byte.

use std::collections::BTreeMap;

use crate::clock::now_us;
use crate::conn::{Conn, Gone};
use crate::resp::Value;

/// By database and name: what is in it, and when it ends, ms since 1970.
pub type Keys = BTreeMap<(u8, String), (String, i64)>;

const AT_ONCE: usize = 200;

pub fn dump(port: u16) -> Result<Keys, Gone> {
    let mut conn = Conn::open(port)?;
    let mut all = Keys::new();
    for db in 0..2 {
        conn.ask(&format!("SELECT {db}"))?;
        let reply = conn.ask("KEYS *")?;
        let names: Vec<&str> = reply.array().iter().filter_map(Value::text).collect();
        for chunk in names.chunks(AT_ONCE) {
            let lines = chunk.iter().flat_map(|name| {
                ["PEXPIRETIME", "TYPE", "HGETALL", "GET"].map(|word| format!("{word} {name}"))
            });
            conn.send(&lines.collect::<Vec<_>>())?;
            for name in chunk {
                let mut next = || conn.next(now_us() + 20_000_000);
                let (ends, kind, hash, text) = (next()?, next()?, next()?, next()?);
                let ends = match ends {
                    Value::Int(ends) => ends,
                    _ => -3,
                };
                let value = match kind.text() {
                    // It ended meanwhile.
                    Some("none") => continue,
                    Some("hash") => fields(&hash),
                    _ => format!("{kind:?} {text:?}"),
                };
                all.insert((db, (*name).to_owned()), (value, ends));
            }
        }
    }
    Ok(all)
}

fn fields(hash: &Value) -> String {
    let pairs = hash.array().chunks_exact(2);
    let mut all: Vec<String> = pairs
        .map(|pair| {
            let text = |at: usize| pair[at].text().unwrap_or_default();
            format!("{}={}", text(0), text(1))
        })
        .collect();
    all.sort();
    format!("hash {}", all.join(" "))
}

/// The next moment at which anything ends, of permits too; ms since 1970.
pub fn next_end(keys: &Keys) -> Option<u64> {
    let permits = |value: &str| -> Vec<u64> {
        let fields = value.split(' ').filter_map(|field| field.split_once('@'));
        fields.filter_map(|(_, ends)| ends.parse().ok()).collect()
    };
    let ends = keys.values().flat_map(|(value, ends)| {
        let mut all = permits(value);
        all.extend(u64::try_from(*ends));
        all
    });
    ends.min()
}

pub fn differences(one: &Keys, other: &Keys) -> Vec<String> {
    let mut all = Vec::new();
    let mut names: Vec<_> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let (here, there) = (one.get(name), other.get(name));
        if here != there {
            all.push(format!("{name:?}\n    {here:?}\n    {there:?}"));
        }
    }
    all
}
