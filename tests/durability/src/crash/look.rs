//! Who holds what, as a server says.

use std::collections::BTreeMap;

use crate::clock::now_us;
use crate::conn::{Conn, Gone};
use crate::item::{wall_us, State, FREE};
use crate::resp::Value;

/// By owner and mode.
pub type Holders = BTreeMap<(String, String), State>;

pub struct Looked {
    pub at: u64,
    pub locks: BTreeMap<(u8, String), Holders>,
}

const AT_ONCE: usize = 200;

/// What came, and in which time it was said.
pub struct Reply {
    pub value: Value,
    said: (u64, u64),
}

/// One line for each lock, and what is said to it.
pub fn ask(
    port: u16,
    locks: &[(u8, String)],
    line: impl Fn(usize, &str) -> String,
) -> Result<Vec<Reply>, Gone> {
    let mut replies = Vec::new();
    let mut conn = Conn::open(port)?;
    for db in 0..2 {
        conn.ask(&format!("SELECT {db}"))?;
        let own: Vec<usize> = (0..locks.len()).filter(|at| locks[*at].0 == db).collect();
        for chunk in own.chunks(AT_ONCE) {
            let lines: Vec<String> = chunk.iter().map(|at| line(*at, &locks[*at].1)).collect();
            let sent = wall_us();
            conn.send(&lines)?;
            for at in chunk {
                let value = conn.next(now_us() + 20_000_000)?;
                let said = (sent, wall_us());
                replies.push((*at, Reply { value, said }));
            }
        }
    }
    replies.sort_by_key(|(at, _)| *at);
    Ok(replies.into_iter().map(|(_, reply)| reply).collect())
}

pub fn look(port: u16, locks: &[(u8, String)]) -> Result<Looked, Gone> {
    let replies = ask(port, locks, |_, key| {
        format!("RLOCK.INFO {key} COUNT 1000000")
    })?;
    let at = wall_us();
    let found = replies.iter().map(holders);
    let locks = locks.iter().cloned().zip(found).collect();
    Ok(Looked { at, locks })
}

fn holders(reply: &Reply) -> Holders {
    let Reply { value, said } = reply;
    let number = |holder: &Value, name: &str| match holder.get(name) {
        Some(Value::Int(number)) => Some(*number),
        _ => None,
    };
    let mut all = Holders::new();
    for holder in value.get("holders").map(Value::array).unwrap_or_default() {
        let text = |name: &str| {
            let text = holder.get(name).and_then(Value::text);
            text.unwrap_or_default().to_owned()
        };
        let holds = number(holder, "holds").or(number(holder, "permits"));
        let left = number(holder, "remaining-ms").map(|ms| 1000 * ms as u64);
        let ends = left.map(|left| (said.0 + left, said.1 + left));
        let state = State {
            holds: holds.unwrap_or(-1),
            ends: ends.unwrap_or((u64::MAX, u64::MAX)),
        };
        all.insert((text("owner"), text("mode")), state);
    }
    // What is no lock is held by nobody that we know.
    if let Value::Error(text) = value {
        all.insert((text.clone(), String::new()), FREE);
    }
    all
}
