//! The rows of a drawing: what an owner asked, was told, and held.

use std::collections::BTreeMap;

use rlock_torture::history::Out;

use super::svg::Svg;
use crate::finding::Finding;
use crate::holds::{accounts, Ends, Hold};
use crate::past::{Asked, Past, NEVER};
use crate::report;
use crate::request::{Mode, Verb};
use crate::told::Told;

pub struct Row {
    pub name: String,
    pub marked: bool,
    /// The first that it shows.
    pub first: u64,
    ops: Vec<usize>,
    holds: Vec<Hold>,
}

/// Those who had to do with the lock in this time; without a lock, the connections that
/// the finding is about.
pub fn of(past: &Past, finding: &Finding, (from, to): (u64, u64)) -> Vec<Row> {
    let conns: Vec<u32> = finding.ops.iter().map(|at| past.ops[*at].op.conn).collect();
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, asked) in past.ops.iter().enumerate() {
        let here = match &finding.key {
            Some((db, key)) => asked.db == *db && asked.request.keys.contains(key),
            None => conns.contains(&asked.op.conn),
        };
        let looks = matches!(asked.request.verb, Verb::Info | Verb::Other | Verb::Echo);
        let ours = finding.ops.contains(&at);
        if here && (!looks || ours) {
            let name = match asked.owner.is_empty() {
                true => format!("c{}", asked.op.conn),
                false => asked
                    .owner
                    .chars()
                    .rev()
                    .take(22)
                    .collect::<String>()
                    .chars()
                    .rev()
                    .collect(),
            };
            by_name.entry(name).or_default().push(at);
        }
    }
    let rows = by_name.into_iter();
    let rows = rows.map(|(name, ops)| Row::new(past, finding, name, ops));
    rows.filter(|row| row.shows(past, from, to)).collect()
}

impl Row {
    fn new(past: &Past, finding: &Finding, name: String, ops: Vec<usize>) -> Self {
        let mut conns: Vec<u32> = ops.iter().map(|at| past.ops[*at].op.conn).collect();
        conns.dedup();
        conns.truncate(2);
        let conns: Vec<String> = conns.iter().map(|conn| format!("c{conn}")).collect();
        let holds = match &finding.key {
            Some((db, key)) => accounts(past, &Ends::new(past, *db, key), &ops),
            None => Vec::new(),
        };
        let first = ops.iter().map(|at| past.ops[*at].op.call).min();
        Self {
            name: format!("{name} {}", conns.join(" ")),
            marked: ops.iter().any(|at| finding.ops.contains(at)),
            first: first.unwrap_or(0),
            ops,
            holds,
        }
    }

    fn shows(&self, past: &Past, from: u64, to: u64) -> bool {
        let asks =
            self.ops.iter().map(|at| &past.ops[*at]).any(|asked| {
                asked.op.call <= to && asked.op.reply.unwrap_or(asked.op.call) >= from
            });
        asks || self
            .holds
            .iter()
            .any(|hold| hold.start <= to && hold.end >= from)
    }

    pub fn draw(&self, past: &Past, row: usize, svg: &mut Svg) {
        for hold in &self.holds {
            let tip = report::line(past, &past.ops[hold.op], "");
            svg.bar(row, "might", (hold.start, hold.natural), (4.0, 13.0), &tip);
        }
        for hold in &self.holds {
            let asked = &past.ops[hold.op];
            let tip = report::line(past, asked, "");
            svg.bar(row, "hold", (hold.start, hold.end), (4.0, 13.0), &tip);
            let token = asked
                .token()
                .map_or(String::new(), |token| token.to_string());
            let many = match hold.mode {
                Mode::Permits if hold.permits > 0 => format!(" x{}", hold.permits),
                _ => String::new(),
            };
            let text = format!("{token}{many}");
            svg.label(row, "token", (hold.start, hold.end), 14.0, &text);
        }
        let mut tags = Vec::new();
        for asked in self.ops.iter().map(|at| &past.ops[*at]) {
            request(past, asked, row, svg);
            if let Some((_, tag)) = &asked.request.notify {
                tags.push((asked.op.conn, tag.clone()));
            }
        }
        tags.sort();
        tags.dedup();
        for (conn, tag) in tags {
            for (at, told) in past.told.get(&(conn, tag.clone())).into_iter().flatten() {
                let class = if matches!(told, Told::Lost(_)) {
                    "lost"
                } else {
                    "told"
                };
                svg.message(row, class, *at, &format!("c{conn} {tag}: {told:?}"));
                if let Told::Lost(reason) = told {
                    svg.words(row, "lost", *at, 26.0, &format!("  lost: {reason}"));
                }
            }
        }
    }
}

/// What was asked, when, and what came of it.
fn request(past: &Past, asked: &Asked, row: usize, svg: &mut Svg) {
    let (call, end) = (
        asked.op.call,
        asked.op.reply.unwrap_or(asked.done.min(NEVER / 2)),
    );
    let tip = report::line(past, asked, "");
    if asked.waits().is_some() {
        svg.bar(row, "wait", (call, end), (20.0, 3.0), &tip);
    }
    let class = match (&asked.op.out, asked.request.acquires()) {
        (Out::Error(_) | Out::Lost | Out::Unanswered, _) => "no",
        (_, true) => "ask",
        _ => "back",
    };
    let until = match (asked.waits(), asked.op.reply) {
        (None, Some(reply)) => reply,
        _ => asked.queued.unwrap_or(call),
    };
    svg.bar(row, class, (call, until), (18.0, 7.0), &tip);
    let said = match &asked.op.out {
        Out::Error(text) => text.split(' ').next().unwrap_or_default().to_owned(),
        Out::Null => "null".to_owned(),
        Out::Lost => "connection lost".to_owned(),
        Out::Unanswered => "no answer".to_owned(),
        Out::Int(left) if asked.request.releases() => format!("release: {left}"),
        Out::Int(count) if asked.request.verb == Verb::Cancel => format!("cancel: {count}"),
        _ => return,
    };
    svg.words(row, "said", end.min(call.max(end)), 26.0, &said);
}
