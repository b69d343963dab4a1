//! What messages notified sessions of, and the queued waiters whose waits ended so: they are
//! made to look like blocked ones, so that all checks see both.

use std::collections::BTreeMap;
use std::iter;

use rlock_torture::history::{Message, Out};

use crate::past::{cuts_bonds, Asked, Past, NEVER};

/// A connection, and its name for a request.
pub type Tag = (u32, String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Granted(i64),
    Timeout,
    Error(String),
    Lost(String),
    Wanted,
}

impl Told {
    /// What a message says: of one tag one thing, or that it is granted and wanted.
    fn parse(text: &str) -> Option<(String, Vec<Self>)> {
        let mut words = text.splitn(3, ' ');
        let (word, tag, rest) = (words.next()?, words.next()?, words.next());
        if let ("granted", Some(rest)) = (word, rest) {
            let token = rest.strip_suffix(" wanted");
            let granted = Self::Granted(token.unwrap_or(rest).parse().ok()?);
            let wanted = token.map(|_| Self::Wanted);
            return Some((tag.to_owned(), iter::once(granted).chain(wanted).collect()));
        }
        let told = match (word, rest) {
            ("timeout", None) => Self::Timeout,
            ("wanted", None) => Self::Wanted,
            ("error", Some(text)) => Self::Error(text.to_owned()),
            ("lost", Some(reason)) => Self::Lost(reason.to_owned()),
            _ => return None,
        };
        Some((tag.to_owned(), vec![told]))
    }

    /// It is how a wait ended.
    pub fn ends(&self) -> bool {
        !matches!(self, Self::Lost(_) | Self::Wanted)
    }

    fn out(&self) -> Out {
        match self {
            Self::Granted(token) => Out::Int(*token),
            Self::Timeout => Out::Null,
            Self::Error(text) => Out::Error(text.clone()),
            Self::Lost(_) | Self::Wanted => Out::Lost,
        }
    }
}

/// Sorts the messages, and gives the waits their ends.
pub fn resolve(past: &mut Past, messages: Vec<Message>) {
    let mut messages = messages;
    messages.sort_by_key(|message| message.at);
    for message in messages {
        match Told::parse(&message.text) {
            Some((tag, told)) => {
                let all = past.told.entry((message.conn, tag)).or_default();
                all.extend(told.into_iter().map(|told| (message.at, told)));
            }
            None if message.text == "sunsubscribe" => {
                let all = past.deaf.entry(message.conn).or_default();
                all.push((message.at, message.at));
            }
            None => past.babble.push(message),
        }
    }
    for asked in &past.ops {
        let word = asked.op.args[0].as_str();
        if ["UNSUBSCRIBE", "SUNSUBSCRIBE", "RESET"].contains(&word) {
            let all = past.deaf.entry(asked.op.conn).or_default();
            all.push((asked.op.call, asked.done));
        }
    }
    let mut waits: BTreeMap<Tag, Vec<usize>> = BTreeMap::new();
    for (at, asked) in past.ops.iter().enumerate() {
        let queued = asked.op.out == Out::Text("QUEUED".to_owned()) && asked.request.queues;
        if let (true, Some((_, tag))) = (queued, &asked.request.notify) {
            let tag = (asked.op.conn, tag.clone());
            waits.entry(tag).or_default().push(at);
        }
    }
    for (tag, ops) in waits {
        end(past, &tag, &ops);
    }
}

/// The waits of one name, in order, get their ends in order, from the last of both: who
/// was sent again took the place of the one before, without a word.
fn end(past: &mut Past, tag: &Tag, ops: &[usize]) {
    let all = past.told.get(tag).map_or(&[][..], Vec::as_slice);
    let ends = all.iter().filter(|(_, told)| told.ends());
    let ends: Vec<(u64, Out)> = ends.map(|(at, told)| (*at, told.out())).collect();
    // Of too many the first ones count.
    let mut ends: Vec<(u64, Out)> = ends.into_iter().take(ops.len()).collect();
    for (before, at) in ops.iter().enumerate().rev() {
        let gone = gone(past, &past.ops[*at]);
        let asked = &mut past.ops[*at];
        asked.queued = asked.op.reply;
        asked.again = ops.len() > 1;
        // What came before it was asked is for one before it. So may be what came before it was
        // answered, where that one has no other end: it was granted, and over, as this was sent.
        let from = match before < ends.len() {
            true => asked.op.call,
            false => asked.queued.unwrap_or(asked.op.call),
        };
        match ends.pop_if(|(when, _)| *when >= from) {
            Some((when, out)) => {
                asked.op.reply = Some(when);
                asked.op.out = out;
                asked.done = when;
            }
            None => {
                asked.op.reply = None;
                asked.op.out = Out::Lost;
                asked.done = gone;
            }
        }
    }
}

/// By when one who waits without hearing how that ended had surely left.
fn gone(past: &Past, asked: &Asked) -> u64 {
    let conn = past.conns.get(&asked.op.conn);
    let closed = conn.map_or(NEVER, |conn| past.settled(conn.closed));
    let deaf = past.deaf.get(&asked.op.conn).into_iter().flatten();
    let deaf = deaf.filter(|(from, _)| *from >= asked.op.call);
    let deaf = deaf.map(|(_, by)| past.settled(*by)).min();
    closed.min(deaf.unwrap_or(NEVER))
}

/// Until when a connection surely hears what is told about what it asked by this
/// request.
pub fn hears_until(past: &Past, asked: &Asked) -> u64 {
    let from = asked.op.call;
    let deaf = past.deaf.get(&asked.op.conn).into_iter().flatten();
    let deaf = deaf.map(|(begin, _)| *begin).filter(|at| *at >= from);
    let faults = past.faults.iter().filter(|fault| cuts_bonds(&fault.kind));
    let faults = faults.filter(|fault| fault.end >= from);
    let cut = faults.map(|fault| fault.begin);
    let (closed, _) = past.death(asked.op.conn);
    deaf.chain(cut).chain([closed]).min().unwrap_or(NEVER)
}

/// When an owner first asked to release what it got by this request, or was told of its loss.
pub fn given_up(past: &Past, ops: &[usize], grant: &Asked) -> u64 {
    let asked = ops.iter().map(|at| &past.ops[*at]);
    let released = asked.filter(|one| one.request.releases());
    let tag = grant.request.notify.as_ref();
    let tag = tag.map(|(_, tag)| (grant.op.conn, tag.clone()));
    let told = tag.and_then(|tag| past.told.get(&tag));
    let told = told.into_iter().flatten();
    let lost = told.filter(|(_, told)| matches!(told, Told::Lost(_)));
    let ends = released
        .map(|one| one.op.call)
        .chain(lost.map(|(at, _)| *at));
    ends.min().unwrap_or(NEVER)
}

/// A message comes in less than that where nothing is in its way, us.
const LATE: u64 = 1_000_000;
/// What is due has been done when the loop has turned for so long, us.
const TURNS: u64 = 500_000;

/// When a connection must have been told of what its server did, or should have done, at
/// this moment; none where nobody knows.
pub fn due(past: &Past, asked: &Asked, moment: u64) -> Option<u64> {
    let calm = past.calm(moment, moment + LATE).then_some(moment + LATE);
    let due = calm.into_iter().chain(behind(past, asked, moment)).min()?;
    (hears_until(past, asked) > due).then_some(due)
}

/// What is told stands in the stream before the reply to what was asked long after: asked
/// when the server had answered something else that was asked after that moment.
fn behind(past: &Past, asked: &Asked, moment: u64) -> Option<u64> {
    let ops = past.by_conn.get(&asked.op.conn)?;
    let next = |from: u64| {
        let first = ops.partition_point(|at| past.ops[*at].op.call <= from);
        let mut later = ops[first..].iter().map(|at| &past.ops[*at]);
        later.find_map(|one| one.queued.or(one.op.reply))
    };
    let reply = next(next(moment)? + TURNS)?;
    (!past.put_off(moment, reply)).then_some(reply)
}
