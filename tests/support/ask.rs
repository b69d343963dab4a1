//! Short ways to put a request and to take its reply apart.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::Value;

use crate::support::{encode, eventually, RawClient, Server, BOUND};

/// Requests as one would type them: words between blanks.
pub trait Ask {
    fn ask(&mut self, line: &str) -> Value;
    fn int(&mut self, line: &str) -> i64;
    fn text(&mut self, line: &str) -> String;
    fn texts(&mut self, line: &str) -> Vec<String>;
    fn ok(&mut self, line: &str);
    /// Requests that reach the server in one go, so that no stall of the test
    /// comes between them; none may fail.
    fn at_once(&mut self, lines: &[&str]) -> Vec<Value>;
    /// Whether the reply is null.
    fn refused(&mut self, line: &str) -> bool;
    /// The line of the error reply that is expected.
    fn error(&mut self, line: &str) -> String;
    fn error_to<A: AsRef<[u8]>>(&mut self, args: &[A]) -> String;
    /// What the key is and when it ends; two are equal only if nobody touched it.
    fn state(&mut self, key: &[u8]) -> [Value; 3];
    /// When the key ends, ms since 1970; -1: never, -2: it does not exist.
    fn deadline(&mut self, key: &str) -> i64;
    /// How many changes the server has counted.
    fn changes(&mut self) -> u64;
}

impl Ask for RawClient {
    #[track_caller]
    fn ask(&mut self, line: &str) -> Value {
        self.call(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[track_caller]
    fn int(&mut self, line: &str) -> i64 {
        match self.ask(line) {
            Value::Int(number) => number,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[track_caller]
    fn text(&mut self, line: &str) -> String {
        text(self.ask(line))
    }

    #[track_caller]
    fn texts(&mut self, line: &str) -> Vec<String> {
        list(self.ask(line)).into_iter().map(text).collect()
    }

    #[track_caller]
    fn ok(&mut self, line: &str) {
        assert_eq!(self.ask(line), Value::Okay, "{line}");
    }

    #[track_caller]
    fn at_once(&mut self, lines: &[&str]) -> Vec<Value> {
        let requests: Vec<Vec<&str>> = lines
            .iter()
            .map(|line| line.split_whitespace().collect())
            .collect();
        self.send_many(&requests.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let replies = self.read_many(lines.len());
        let failed = |reply: &Value| matches!(reply, Value::ServerError(_));
        assert!(!replies.iter().any(failed), "{replies:?}");
        replies
    }

    #[track_caller]
    fn refused(&mut self, line: &str) -> bool {
        match self.ask(line) {
            Value::Nil => true,
            Value::Int(_) => false,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[track_caller]
    fn error(&mut self, line: &str) -> String {
        error_line(self.ask(line))
    }

    #[track_caller]
    fn error_to<A: AsRef<[u8]>>(&mut self, args: &[A]) -> String {
        error_line(self.call(args))
    }

    #[track_caller]
    fn state(&mut self, key: &[u8]) -> [Value; 3] {
        [b"TYPE".as_slice(), b"DUMP", b"PEXPIRETIME"].map(|command| self.call(&[command, key]))
    }

    #[track_caller]
    fn deadline(&mut self, key: &str) -> i64 {
        self.int(&format!("PEXPIRETIME {key}"))
    }

    #[track_caller]
    fn changes(&mut self) -> u64 {
        let info = self.text("INFO persistence");
        let field = "rdb_changes_since_last_save:";
        let line = info.lines().find_map(|line| line.strip_prefix(field));
        line.expect("counted").parse().expect("a number")
    }
}

#[track_caller]
pub fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).expect("text"),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text,
        Value::Okay => "OK".to_owned(),
        other => panic!("no text: {other:?}"),
    }
}

#[track_caller]
pub fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) | Value::Set(values) => values,
        other => panic!("no list: {other:?}"),
    }
}

/// A map as RESP2 and RESP3 write it.
#[track_caller]
pub fn map(value: Value) -> BTreeMap<String, Value> {
    match value {
        Value::Map(pairs) => pairs.into_iter().map(|(k, v)| (text(k), v)).collect(),
        Value::Array(flat) => flat
            .chunks(2)
            .map(|pair| (text(pair[0].clone()), pair[1].clone()))
            .collect(),
        other => panic!("no map: {other:?}"),
    }
}

#[track_caller]
pub fn error_line(value: Value) -> String {
    match value {
        Value::ServerError(error) => match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        },
        other => panic!("no error: {other:?}"),
    }
}

pub fn bulk(text: impl AsRef<[u8]>) -> Value {
    Value::BulkString(text.as_ref().to_vec())
}

pub fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("now");
    i64::try_from(now.as_micros()).expect("before the year 294247")
}

pub fn now_ms() -> i64 {
    now_us() / 1000
}

/// Does something, and gives when a lease of `ms` that begins meanwhile ends.
pub fn lease_from<T>(ms: i64, action: impl FnOnce() -> T) -> (T, RangeInclusive<i64>) {
    let before = now_ms();
    let result = action();
    (result, before + ms..=now_ms() + ms)
}

/// Waits until the master counts its replica as online, which is up to a second
/// after the replica is in sync.
#[track_caller]
pub fn replica_counts(master: &Server) {
    eventually("the master counts its replica", || {
        let line = master.info_field("replication", "slave0");
        line.is_some_and(|line| line.contains("state=online"))
    });
}

/// A client that sees the very bytes of each reply.
pub struct Wire(TcpStream);

impl Wire {
    pub fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("connect");
        stream.set_read_timeout(Some(BOUND)).expect("time-out");
        Self(stream)
    }

    /// The same for a client that speaks RESP3.
    pub fn connect_resp3(server: &Server) -> Self {
        let mut wire = Self::connect(server);
        let hello = wire.exact(&["HELLO", "3"]);
        assert!(hello.starts_with(b"%"), "{hello:?}");
        wire
    }

    /// All bytes that a request is answered with.
    #[track_caller]
    pub fn exact<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Vec<u8> {
        self.exact_to(encode(args))
    }

    /// The same for words between blanks, and for several requests, one a line.
    #[track_caller]
    pub fn exact_text(&mut self, lines: &str) -> String {
        let words = |line: &str| encode(&line.split_whitespace().collect::<Vec<_>>());
        let reply = self.exact_to(lines.lines().flat_map(words).collect());
        String::from_utf8(reply).expect("text")
    }

    #[track_caller]
    fn exact_to(&mut self, mut request: Vec<u8>) -> Vec<u8> {
        request.extend(encode(&["ECHO", "that was all of the reply"]));
        self.0.write_all(&request).expect("the server reads");
        let end = b"$25\r\nthat was all of the reply\r\n";
        let mut reply = Vec::new();
        while !reply.ends_with(end) {
            let mut chunk = [0; 4096];
            let count = self.0.read(&mut chunk).expect("a reply in time");
            assert_ne!(count, 0, "closed after {reply:?}");
            reply.extend(&chunk[..count]);
        }
        reply.truncate(reply.len() - end.len());
        reply
    }
}
