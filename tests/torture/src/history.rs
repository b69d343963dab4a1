//! The history: what clients asked and were told, what was done to the servers, and
//! what was seen of them. One JSON object a line. Times are microseconds of the
//! monotonic clock.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum Record {
    Round(Round),
    Op(Op),
    Conn(Conn),
    Fault(Fault),
    Run(Run),
    Stall(Stall),
    Ping(Ping),
    Stray(Stray),
    Message(Message),
    Sample(Sample),
    Rest(Rest),
    Copies(Copies),
    Crash(Crash),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    pub seed: u64,
    pub round: u32,
    pub server: String,
    pub topology: String,
    /// `always`, `none`.
    pub persistence: String,
    pub repeat: String,
    pub at: u64,
    /// For how many replicas holders wait, by WAIT, before they begin; 0: they do not.
    #[serde(default)]
    pub wait: u32,
    /// Nothing is done that may end a hold.
    #[serde(default)]
    pub strict: bool,
    /// The server reads requests in several threads, so that those of different connections
    /// come in any order.
    #[serde(default)]
    pub threads: bool,
}

/// One request. `sent` is when its last byte was handed to the kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Op {
    pub conn: u32,
    #[serde(rename = "a")]
    pub args: Vec<String>,
    #[serde(rename = "c")]
    pub call: u64,
    #[serde(rename = "s")]
    pub sent: u64,
    #[serde(rename = "r")]
    pub reply: Option<u64>,
    #[serde(rename = "o")]
    pub out: Out,
    /// Sent inside MULTI.
    #[serde(default, rename = "m", skip_serializing_if = "is_false")]
    pub multi: bool,
    /// Sent behind requests that were not answered yet.
    #[serde(default, rename = "b", skip_serializing_if = "is_false")]
    pub behind: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Out {
    #[serde(rename = "i")]
    Int(i64),
    #[serde(rename = "n")]
    Null,
    #[serde(rename = "e")]
    Error(String),
    #[serde(rename = "t")]
    Text(String),
    #[serde(rename = "v")]
    View(View),
    #[serde(rename = "x")]
    Other(String),
    /// The connection ended before the reply came.
    #[serde(rename = "l")]
    Lost,
    /// What RLOCK.LIST told: whether that was all, and each holder's key and owner.
    #[serde(rename = "k")]
    List(bool, Vec<(String, String)>),
    /// The connection was open to the end, and no reply came.
    #[serde(rename = "u")]
    Unanswered,
}

/// What RLOCK.INFO said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub mode: String,
    pub holders: Vec<String>,
    pub waiters: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By us, and the server had not closed it before.
    Client,
    Server,
    /// At the end of the round.
    Open,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conn {
    pub conn: u32,
    pub server: u16,
    pub db: u32,
    /// The client id and the owner that `*` stands for, where the server told them.
    pub client_id: Option<i64>,
    pub owner: Option<String>,
    pub opened: u64,
    /// When its end was begun by us, or seen.
    pub closed: u64,
    /// The last sign of life from the server.
    pub last: u64,
    pub end: End,
}

/// What was done to a server, a client or a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    pub kind: String,
    pub server: u16,
    pub begin: u64,
    pub end: u64,
    /// The keys it concerns; none: all of them, or no key.
    #[serde(default)]
    pub keys: Vec<String>,
    #[serde(default)]
    pub db: u32,
    #[serde(default)]
    pub ms: u64,
    #[serde(default)]
    pub note: String,
}

/// A life of a server's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub server: u16,
    pub from: u64,
    pub to: Option<u64>,
}

/// Somebody stood still for longer than the machine should let it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stall {
    pub who: String,
    pub from: u64,
    pub to: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ping {
    pub server: u16,
    pub call: u64,
    pub reply: u64,
}

/// A reply that nobody had asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stray {
    pub conn: u32,
    pub at: u64,
    pub text: String,
}

/// What a session was told on its channel; `sunsubscribe`, when its server ended that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    pub conn: u32,
    pub at: u64,
    pub text: String,
}

/// Events heard and counters read at one point of one connection's stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub server: u16,
    /// Counts up with each connection of the subscriber.
    pub stream: u32,
    pub at: u64,
    pub counters: BTreeMap<String, i64>,
    pub events: BTreeMap<String, i64>,
}

/// A server when all clients rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rest {
    pub server: u16,
    pub at: u64,
    pub counters: BTreeMap<String, i64>,
    /// What RLOCK.TOP told.
    pub top: String,
}

/// A server's keys, and those of a copy of it, at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Copies {
    pub server: u16,
    /// `replica`, `aof`.
    pub what: String,
    pub at: u64,
    /// Keys that were due by this time of the wall clock (ms) say nothing.
    pub due: u64,
    pub original: BTreeMap<String, Entry>,
    pub copy: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub value: BTreeMap<String, String>,
    /// Of the wall clock, ms; -1: none.
    pub expires: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crash {
    pub server: u16,
    pub at: u64,
    pub text: String,
}

/// Writes records to a file.
pub struct Recorder {
    file: BufWriter<File>,
}

impl Recorder {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(Self { file })
    }

    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, record)?;
        self.file.write_all(b"\n")
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// All records of a file. The last line may be cut short.
pub fn read(path: &Path) -> io::Result<Vec<Record>> {
    let lines: Vec<String> = BufReader::new(File::open(path)?)
        .lines()
        .collect::<Result<_, _>>()?;
    let last = lines.len().saturating_sub(1);
    let mut records = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            Err(_) if at == last => (),
            Err(error) => {
                let text = format!("{}:{}: {error}", path.display(), at + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
    }
    Ok(records)
}
