//! Each request is answered once, by what its command may answer, and a wait that is
//! in vain ends when it should.

use rlock_torture::history::{Op, Out};

use crate::closes::names;
use crate::finding::{Finding, Findings};
use crate::past::{Asked, Past};
use crate::request::{Request, Verb};

/// Refusals that the documentation names, and the server's own.
pub const CODES: [&str; 24] = [
    "NOTHELD",
    "HELD",
    "DEADLOCK",
    "WRONGMODE",
    "WRONGTYPE",
    "OOM",
    "NOREPLICAS",
    "MISCONF",
    "READONLY",
    "CROSSSLOT",
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "LOADING",
    "UNBLOCKED",
    "SUPERSEDED",
    "CLUSTERDOWN",
    "EXECABORT",
    "MASTERDOWN",
    "BUSY",
    "REDIRECT",
    "WRONGLIMIT",
    "MAXWAITERS",
    "NOTYET",
];
/// The least that a token can be: microseconds since 1970.
pub const FIRST_TOKEN: i64 = 1_000_000_000_000_000;
const EARLY: u64 = 2_000;
const LATE: u64 = 1_000_000;

pub fn check(past: &Past, found: &mut Findings) {
    for stray in &past.strays {
        found.add(Finding {
            check: "answers",
            text: format!(
                "connection {} got a reply to nothing: {}",
                stray.conn, stray.text
            ),
            key: None,
            ops: around(past, stray.conn, stray.at),
            from: stray.at,
            to: stray.at,
        });
    }
    for (at, asked) in past.ops.iter().enumerate() {
        let mut tell = |check, text: String| {
            found.add(Finding {
                check,
                text,
                key: asked
                    .request
                    .keys
                    .first()
                    .map(|key| (asked.db, key.clone())),
                ops: vec![at],
                from: asked.op.call,
                to: asked.op.reply.unwrap_or(asked.op.call),
            });
        };
        let out = asked.spoiled.as_ref().unwrap_or(&asked.op.out);
        let wrong = wrong(&asked.op.args, &asked.request, out);
        if let Some(wrong) = wrong.filter(|_| !is_deaf(past, asked, out)) {
            tell("answers", wrong.to_owned());
        }
        if let Some(wrong) = out_of_time(past, asked) {
            tell("time-outs", wrong);
        }
        found.checked("answers");
        if asked.waits().is_some() {
            found.checked("time-outs");
        }
    }
}

/// The slot of its channel had gone, and with it what the connection subscribed to: it was told so
/// no later than it was refused.
fn is_deaf(past: &Past, asked: &Asked, out: &Out) -> bool {
    let deaf = past.deaf.get(&asked.op.conn).into_iter().flatten();
    let needs = |text: &str| text.starts_with("ERR QUEUE and NOTIFY need RESP3");
    matches!(out, Out::Error(text) if needs(text))
        && asked.request.notify.is_some()
        && deaf.into_iter().any(|(from, _)| *from <= asked.done)
}

/// The last requests of a connection before a moment.
fn around(past: &Past, conn: u32, at: u64) -> Vec<usize> {
    let end = past.ops.partition_point(|asked| asked.op.call <= at);
    let mut all = (0..end).rev().filter(|op| past.ops[*op].op.conn == conn);
    let mut last: Vec<usize> = all.by_ref().take(3).collect();
    last.reverse();
    last
}

/// Whether a request was answered by what answers another kind of request.
pub fn misfits(op: &Op) -> bool {
    let told = !matches!(op.out, Out::Error(_) | Out::Unanswered);
    told && wrong(&op.args, &Request::parse(&op.args), &op.out).is_some()
}

fn wrong(args: &[String], request: &Request, out: &Out) -> Option<&'static str> {
    let refused = request.is_wrong();
    let keys = request.keys.len() as i64;
    match (out, request.verb) {
        (Out::Lost, _) => None,
        (Out::Unanswered, _) => Some("never answered, though its connection was open"),
        // The master has become a replica.
        (Out::Error(text), Verb::Wait) if text.contains("replica instances") => None,
        (Out::Error(text), _) => {
            let code = text.split(' ').next().unwrap_or_default();
            let known = CODES.contains(&code) || (refused && code == "ERR");
            (!known).then_some("an error that nobody told of")
        }
        _ if refused => Some("what is no request was not refused"),
        (Out::Int(token), Verb::Acquire | Verb::Macquire) => {
            (*token < FIRST_TOKEN).then_some("no token")
        }
        (Out::Null, Verb::Acquire | Verb::Macquire) => None,
        (Out::Int(0..=5000), Verb::Release) => None,
        (Out::Int(1), Verb::Renew | Verb::Mrenew) => None,
        (Out::Int(count), Verb::Mrelease) if (0..=keys).contains(count) => None,
        (Out::View(_), Verb::Info) => None,
        (Out::Text(text), Verb::Echo) if *text == args[1] => None,
        (Out::Text(text), Verb::Heartbeat) if text == "OK" => None,
        (Out::Text(_), Verb::Other) => None,
        (Out::Int(0..=9), Verb::Wait) => None,
        (Out::Text(text), Verb::Acquire | Verb::Macquire) if request.queues => {
            (text != "QUEUED").then_some("no answer to a wait")
        }
        (Out::Int(0..=64), Verb::Cancel) => None,
        // The condition is one that no lock fulfils.
        (Out::Int(0), Verb::Force) => None,
        (Out::Int(1..=9), Verb::Limit) => None,
        (Out::List(..), Verb::List) => None,
        _ => Some("no answer to what was asked"),
    }
}

fn out_of_time(past: &Past, asked: &Asked) -> Option<String> {
    let reply = asked.op.reply?;
    let timed_out = asked.op.out == Out::Null;
    let calm = || past.calm(asked.op.sent, reply);
    match asked.waits() {
        Some(block) if block > 0 => {
            let due = asked.op.call + block;
            if timed_out && reply + EARLY < due && !asked.again && !unblocked(past, asked, reply) {
                let ms = (due - reply) / 1000;
                return Some(format!("timed out {ms} ms before its time"));
            }
            if !asked.op.behind && reply > asked.op.sent + block + LATE && calm() {
                let ms = (reply - asked.op.sent - block) / 1000;
                return Some(format!("ended {ms} ms after its time"));
            }
        }
        Some(_) if timed_out && !unblocked(past, asked, reply) => {
            return Some("a wait without end timed out".to_owned());
        }
        None if !asked.op.behind && reply > asked.op.sent + LATE && calm() => {
            let ms = (reply - asked.op.sent) / 1000;
            return Some(format!("answered after {ms} ms"));
        }
        _ => (),
    }
    None
}

/// Whether somebody sent it away before its time.
pub fn unblocked(past: &Past, asked: &Asked, reply: u64) -> bool {
    if cancelled(past, asked, reply) {
        return true;
    }
    let Some(conn) = past.conns.get(&asked.op.conn) else {
        return false;
    };
    past.faults.iter().any(|fault| {
        fault.kind == "unblock"
            && fault.begin <= reply
            && fault.end >= asked.op.call
            && names(fault, conn)
    })
}

/// Whether its owner called it off.
fn cancelled(past: &Past, asked: &Asked, reply: u64) -> bool {
    let cancels = past.cancels.get(&(asked.db, asked.owner.clone()));
    let mut cancels = cancels.into_iter().flatten().map(|at| &past.ops[*at]);
    cancels.any(|one| {
        let key = asked.request.keys.contains(&one.request.keys[0]);
        key && one.op.call <= reply && one.done >= asked.op.call && one.op.out != Out::Int(0)
    })
}
