//! Who holds what, as a server says.

use std::collections::BTreeMap;

use crate::conn::{Conn, Gone};
use crate::item::wall_us;
use crate::resp::Value;

/// By owner and mode: holds, and when the lease ends.
pub type Holders = BTreeMap<(String, String), (i64, u64)>;

pub struct Looked {
    pub at: u64,
    pub locks: BTreeMap<(u8, String), Holders>,
}

const AT_ONCE: usize = 200;

/// One line for each lock, and what is said to it.
pub fn ask(
    port: u16,
    locks: &[(u8, String)],
    line: impl Fn(usize, &str) -> String,
) -> Result<Vec<(Value, u64)>, Gone> {
    let mut replies = Vec::new();
    let mut conn = Conn::open(port)?;
    for db in 0..2 {
        conn.ask(&format!("SELECT {db}"))?;
        let own: Vec<usize> = (0..locks.len()).filter(|at| locks[*at].0 == db).collect();
        for chunk in own.chunks(AT_ONCE) {
            let lines: Vec<String> = chunk.iter().map(|at| line(*at, &locks[*at].1)).collect();
            conn.send(&lines)?;
            for at in chunk {
                let reply = conn.next(crate::clock::now_us() + 20_000_000)?;
                replies.push((*at, reply, wall_us()));
            }
        }
    }
    replies.sort_by_key(|(at, ..)| *at);
    Ok(replies
        .into_iter()
        .map(|(_, reply, at)| (reply, at))
        .collect())
}

pub fn look(port: u16, locks: &[(u8, String)]) -> Result<Looked, Gone> {
    let at = wall_us();
    let replies = ask(port, locks, |_, key| {
        format!("RLOCK.INFO {key} COUNT 1000000")
    })?;
    let found = replies.iter().map(|(reply, now)| holders(reply, *now));
    let locks = locks.iter().cloned().zip(found).collect();
    Ok(Looked { at, locks })
}

fn holders(reply: &Value, now: u64) -> Holders {
    let number = |holder: &Value, name: &str| match holder.get(name) {
        Some(Value::Int(number)) => Some(*number),
        _ => None,
    };
    let mut all = Holders::new();
    for holder in reply.get("holders").map(Value::array).unwrap_or_default() {
        let text = |name: &str| {
            let text = holder.get(name).and_then(Value::text);
            text.unwrap_or_default().to_owned()
        };
        let holds = number(holder, "holds").or(number(holder, "permits"));
        let left = number(holder, "remaining-ms").map(|ms| now + 1000 * ms as u64);
        let state = (holds.unwrap_or(-1), left.unwrap_or(u64::MAX));
        all.insert((text("owner"), text("mode")), state);
    }
    // What is no lock is held by nobody that we know.
    if let Value::Error(text) = reply {
        all.insert((text.clone(), String::new()), (-1, 0));
    }
    all
}
