//! What programs saw that use rlock's own clients: what they asked their client for and what
//! it said, what the wires between it and the server were made to do, and what was left.
//! One JSON object a line. Times are microseconds of the monotonic clock.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum Record {
    Round(Round),
    Ask(Ask),
    Told(Told),
    Wire(Wire),
    Fault(Fault),
    Life(Life),
    Stall(Stall),
    Left(Left),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    pub seed: u64,
    pub round: u32,
    pub server: String,
    pub clients: Vec<String>,
    pub repeat: String,
    pub at: u64,
    /// Drivers, by their number; 0 is who asks the server without a client.
    pub drivers: Vec<String>,
    /// Others of these ask the server without a client of ours too.
    #[serde(default)]
    pub raw: Vec<usize>,
    /// The server has no module.
    #[serde(default)]
    pub plain: bool,
}

/// One request to a driver. The driver's number is that of a place: one that was killed has a
/// successor there, of the next `life`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ask {
    pub driver: usize,
    pub life: u32,
    /// `acquire`, `release`, ...
    #[serde(rename = "do")]
    pub what: String,
    pub hold: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub words: Value,
    /// Before the request was written.
    #[serde(rename = "c")]
    pub call: u64,
    /// When its answer was read; none: it never came.
    #[serde(rename = "r")]
    pub reply: Option<u64>,
    /// `{"ok": ...}` or `{"error": ...}`.
    #[serde(default, rename = "o", skip_serializing_if = "Value::is_null")]
    pub out: Value,
}

/// An event: the program learned that it has lost a hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    pub driver: usize,
    pub life: u32,
    pub hold: String,
    pub reason: String,
    pub at: u64,
}

/// A client's connection, as the proxy before the server had it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wire {
    pub driver: usize,
    pub opened: u64,
    /// Before one side of it was told of its end. None: at the end of the round.
    pub closed: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    pub kind: String,
    /// Whom it was done to; none: the server.
    pub driver: Option<usize>,
    pub key: Option<String>,
    pub begin: u64,
    pub end: u64,
}

/// A life of a driver's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Life {
    pub driver: usize,
    pub life: u32,
    pub from: u64,
    pub to: u64,
    pub killed: bool,
    /// How it ended, if that was not right.
    pub wrong: Option<String>,
}

/// The machine let a thread of ours stand still.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stall {
    pub from: u64,
    pub to: u64,
}

/// What the server has after all have given back what they had; empty: nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Left {
    pub when: String,
    pub what: Vec<String>,
    pub looked_at: usize,
}

pub struct Recorder {
    file: BufWriter<std::fs::File>,
}

impl Recorder {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(std::fs::File::create(path)?);
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

pub fn read(path: &Path) -> io::Result<Vec<Record>> {
    let lines = BufReader::new(std::fs::File::open(path)?).lines();
    let mut records = Vec::new();
    for line in lines {
        records.push(serde_json::from_str(&line?)?);
    }
    Ok(records)
}
