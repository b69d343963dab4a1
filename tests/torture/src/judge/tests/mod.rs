//! Histories made by hand: faulty ones that must be found so, by the right check, and
//! sound ones that look much alike and must pass.

mod answers;
mod clocks;
mod closes;
mod exclusion;
mod idle;
mod losses;
mod order;
mod permits;
mod sessions;
mod silent;
mod strict;
mod sums;
mod wanted;

use std::collections::BTreeMap;

use rlock_torture::history::{
    Conn, Copies, Crash, End, Entry, Fault, Message, Op, Out, Ping, Record, Rest, Run, Sample,
    Stall, Stray,
};

use crate::judge;
use crate::past::Past;

const MS: u64 = 1000;
/// A token, and greater ones.
const T: i64 = 1_800_000_000_000_000;

#[derive(Default)]
struct Story(Vec<Record>);

fn ok(number: i64) -> Out {
    Out::Int(number)
}

fn error(text: &str) -> Out {
    Out::Error(text.to_owned())
}

impl Story {
    /// Connections 1 to 9 are open all the time.
    fn new() -> Self {
        (1..10).fold(Self::default(), |story, conn| {
            story.conn(conn, 100_000, End::Open)
        })
    }

    fn conn(mut self, conn: u32, closed: u64, end: End) -> Self {
        let known = |record: &Record| matches!(record, Record::Conn(other) if other.conn == conn);
        self.0.retain(|record| !known(record));
        self.0.push(Record::Conn(Conn {
            conn,
            server: 1,
            db: 0,
            client_id: Some(conn.into()),
            owner: Some(format!("own{conn}")),
            opened: 0,
            closed: closed * MS,
            last: closed * MS,
            end,
        }));
        self
    }

    fn change(mut self, conn: u32, change: impl Fn(&mut Conn)) -> Self {
        for record in &mut self.0 {
            match record {
                Record::Conn(other) if other.conn == conn => change(other),
                _ => (),
            }
        }
        self
    }

    fn opened(self, conn: u32, at: u64) -> Self {
        self.change(conn, |conn| conn.opened = at * MS)
    }

    fn heard_last(self, conn: u32, at: u64) -> Self {
        self.change(conn, |conn| conn.last = at * MS)
    }

    /// A request with the times of call and reply, ms.
    fn op(mut self, conn: u32, line: &str, (call, reply): (u64, u64), out: Out) -> Self {
        let lost = matches!(out, Out::Lost | Out::Unanswered);
        self.0.push(Record::Op(Op {
            conn,
            args: line.split(' ').map(str::to_owned).collect(),
            call: call * MS,
            sent: call * MS + 1,
            reply: (!lost).then_some(reply * MS),
            out,
            multi: false,
            behind: false,
        }));
        self
    }

    fn fault(mut self, kind: &str, keys: &[&str], (begin, end): (u64, u64), note: &str) -> Self {
        self.0.push(Record::Fault(Fault {
            kind: kind.to_owned(),
            server: 1,
            begin: begin * MS,
            end: end * MS,
            keys: keys.iter().map(ToString::to_string).collect(),
            db: 0,
            ms: 0,
            note: note.to_owned(),
        }));
        self
    }

    /// The faults so far were done to another server.
    fn elsewhere(mut self) -> Self {
        for record in &mut self.0 {
            if let Record::Fault(fault) = record {
                fault.server = 2;
            }
        }
        self
    }

    /// A message of a session.
    fn told(self, conn: u32, at: u64, text: &str) -> Self {
        self.with(Record::Message(Message {
            conn,
            at: at * MS,
            text: text.to_owned(),
        }))
    }

    fn ping(mut self, call: u64, reply: u64) -> Self {
        self.0.push(Record::Ping(Ping {
            server: 1,
            call: call * MS,
            reply: reply * MS,
        }));
        self
    }

    fn with(mut self, record: Record) -> Self {
        self.0.push(record);
        self
    }

    /// Which checks find something.
    fn found(self) -> Vec<&'static str> {
        let found = judge(&Past::new(self.0));
        let mut checks: Vec<&str> = found.all.iter().map(|finding| finding.check).collect();
        checks.sort_unstable();
        checks.dedup();
        checks
    }
}

fn acquire(owner: &str, words: &str) -> String {
    format!("RLOCK.ACQUIRE k {owner} 60000 {words}")
        .trim_end()
        .to_owned()
}

fn counts(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}
