//! What the docs allow a command to reply.

use crate::draw::Args;
use crate::resp::Value;

/// The codes of rlock's errors, and those that the server refuses its commands by.
const CODES: [&str; 25] = [
    "MAXWAITERS",
    "ERR",
    "NOTHELD",
    "HELD",
    "WRONGLIMIT",
    "UNBLOCKED",
    "SUPERSEDED",
    "DEADLOCK",
    "NOTYET",
    "WRONGMODE",
    "WRONGTYPE",
    "OOM",
    "NOREPLICAS",
    "MISCONF",
    "READONLY",
    "NOPERM",
    "CROSSSLOT",
    "MOVED",
    "LOADING",
    "ASK",
    "TRYAGAIN",
    "NOAUTH",
    "MASTERDOWN",
    "BUSY",
    "DENIED",
];

const LONGEST_LINE: usize = 512;

/// What is wrong with a reply, if anything.
pub fn check(args: &Args, reply: &Value, resp3: bool) -> Result<(), String> {
    if !reply.fits(resp3) {
        return Err(format!("not of RESP{}", if resp3 { 3 } else { 2 }));
    }
    let name = args[0].to_ascii_uppercase();
    let Some(command) = name.strip_prefix(b"RLOCK.") else {
        return Ok(());
    };
    if let Some(line) = reply.error() {
        // The server's own has what the client sent, as it came.
        return if command == b"NONE" {
            Ok(())
        } else {
            line_of_an_error(line)
        };
    }
    let good = match command {
        b"ACQUIRE" | b"MACQUIRE" => match reply {
            Value::Int(token) => *token > 0,
            Value::Simple(text) => text == b"QUEUED" && says(args, b"QUEUE"),
            reply => reply.is_null() && !matches!(reply, Value::NullArray),
        },
        b"RELEASE" | b"MRELEASE" | b"CANCEL" => at_least(reply, 0),
        b"RENEW" => at_least(reply, 1),
        b"MRENEW" => reply.int() == Some(1),
        b"FORCE" => matches!(reply.int(), Some(0 | 1)),
        b"LIMIT" => at_least(reply, 1) && reply.int() <= Some(1_000_000),
        b"OWNER" => matches!(reply, Value::Bulk(id) if id.contains(&b':')),
        b"HEARTBEAT" => matches!(reply, Value::Simple(text) if text == b"OK"),
        b"INFO" => info(reply, resp3),
        b"WAITERS" => maps(reply, resp3, &["owner", "mode", "waited-ms", "client-id"]),
        b"TOP" => maps(reply, resp3, &["db", "key", "waiters", "oldest-wait-ms"]),
        b"LIST" => list(reply, resp3),
        _ => false,
    };
    good.then_some(())
        .ok_or_else(|| "not what the docs allow".to_owned())
}

fn says(args: &Args, word: &[u8]) -> bool {
    args.iter().any(|arg| arg.eq_ignore_ascii_case(word))
}

fn at_least(reply: &Value, least: i64) -> bool {
    reply.int().is_some_and(|number| number >= least)
}

/// One line, printable, not too long, that begins with a code and says something.
fn line_of_an_error(line: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(line);
    let (code, said) = text.split_once(' ').unwrap_or((&text, ""));
    if !CODES.contains(&code) {
        return Err(format!("no code of rlock's: {code}"));
    }
    if code != "READONLY" && said.len() < 10 {
        return Err("an error that says nothing".to_owned());
    }
    if line.len() > LONGEST_LINE || !line.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return Err(format!("a line of {} bytes, or not printable", line.len()));
    }
    if said.contains("a fault in rlock") {
        return Err("a fault that was caught".to_owned());
    }
    Ok(())
}

fn is_map(value: &Value, resp3: bool) -> bool {
    match value {
        Value::Map(_) => resp3,
        Value::Array(items) => !resp3 && items.len() % 2 == 0,
        _ => false,
    }
}

fn has(value: &Value, resp3: bool, fields: &[&str]) -> bool {
    is_map(value, resp3) && fields.iter().all(|field| value.get(field).is_some())
}

fn maps(reply: &Value, resp3: bool, fields: &[&str]) -> bool {
    let each = |items: &[Value]| items.iter().all(|item| has(item, resp3, fields));
    matches!(reply, Value::Array(items) if each(items))
}

const HOLDER: [&str; 7] = [
    "owner",
    "mode",
    "remaining-ms",
    "held-ms",
    "token",
    "watchdog",
    "wanted-ms",
];

fn info(reply: &Value, resp3: bool) -> bool {
    let Some(mode) = reply.get("mode").and_then(Value::bytes) else {
        return false;
    };
    let modes: [&[u8]; 6] = [
        b"free",
        b"reserved",
        b"exclusive",
        b"read",
        b"write",
        b"permits",
    ];
    let held = !matches!(mode, b"free" | b"reserved");
    let holders = reply.get("holders");
    has(reply, resp3, &["waiters", "oldest-wait-ms"])
        && modes.contains(&mode)
        && holders.is_some_and(|holders| {
            maps(holders, resp3, &HOLDER) && holders.items().is_empty() != held
        })
        && (mode != b"permits" || has(reply, resp3, &["limit", "asked-limit", "available"]))
}

/// 250 owners are looked at for a page, and one that writes and reads is there twice.
fn list(reply: &Value, resp3: bool) -> bool {
    let [Value::Bulk(cursor), page] = reply.items() else {
        return false;
    };
    let fields = [&HOLDER[..], &["key", "presumed"]].concat();
    cursor.is_ascii() && maps(page, resp3, &fields) && page.items().len() <= 2 * 250
}

/// Whether a message of a session is one of those that there are. Ours begin with `x`.
pub fn check_message(payload: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(payload);
    let words: Vec<&str> = text.split(' ').collect();
    let good = match words[..] {
        ["wanted", _] => true,
        ["granted", _, token] | ["granted", _, token, "wanted"] => {
            token.parse::<i64>().is_ok_and(|token| token > 0)
        }
        ["timeout", _] => true,
        ["lost", _, reason] => [
            "expired",
            "forced",
            "deleted",
            "evicted",
            "flushed",
            "overwritten",
            "demoted",
            "moved",
            "rebound",
            "released",
            "silent",
        ]
        .contains(&reason),
        ["error", _, code, ..] => words.len() > 3 && CODES.contains(&code),
        _ => text.starts_with('x'),
    };
    good.then_some(())
        .ok_or_else(|| format!("no message of a session: {text:?}"))
}
