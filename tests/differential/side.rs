//! One of the two servers: how it is spoken to, and all that it says in return.

use redis::Value;

use super::snapshot::{self, Snapshot};
use super::step::{as_function, Bytes, Words};
use crate::support::{Ask, RawClient, Request, Server};

/// In what a server is asked for locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Module,
    Library,
}

/// Tells the messages of one step from those of the next.
const MARK: &[u8] = b"rlock-test:mark";

pub struct Side {
    pub language: Language,
    server: Server,
    client: RawClient,
    hears: RawClient,
}

/// What a server said.
pub struct Said {
    pub replies: Vec<Value>,
    pub messages: Vec<Message>,
    pub keys: Snapshot,
}

/// A message's channel and text.
pub type Message = (Bytes, Bytes);

impl Side {
    pub fn start(language: Language) -> Self {
        let server = Server::start();
        let mut client = server.raw();
        if language == Language::Library {
            // Where the library is needed there is no module.
            client.ok("MODULE UNLOAD rlock");
        }
        let mut hears = server.raw();
        hears.ask("PSUBSCRIBE *");
        if language == Language::Module {
            // Messages go out at once then, as the library's do.
            hears.ask("SUBSCRIBE redisson_lock__channel:{nobody}");
            server.sees_subscribers();
        }
        Self {
            language,
            client,
            server,
            hears,
        }
    }

    /// An empty server again, and a new connection.
    pub fn begin(&mut self, resp3: bool, server_expires: bool) {
        self.client = self.server.raw();
        self.client.ask("FLUSHALL");
        if self.language == Language::Library {
            let code = std::fs::read(library()).expect("the library");
            let load: [&[u8]; 4] = [b"FUNCTION", b"LOAD", b"REPLACE", &code];
            assert_eq!(self.client.text(&load), "rlock1");
        }
        let active = if server_expires { "1" } else { "0" };
        self.client.ok(&["DEBUG", "SET-ACTIVE-EXPIRE", active]);
        if resp3 {
            self.client.ask("HELLO 3");
        }
        self.send(&[]);
        self.hear(0);
    }

    /// A lock command as this server knows it.
    pub fn in_its_words(&self, words: &[Bytes]) -> Words {
        match self.language {
            Language::Module => words.to_vec(),
            Language::Library => as_function(words),
        }
    }

    /// Asks for something whose reply does not matter.
    pub fn ask(&mut self, words: &Words) {
        self.client.ask(words);
    }

    /// Sends all of it in one write, so that no time passes in between.
    pub fn send(&mut self, commands: &[Words]) {
        let mut bytes: Vec<u8> = commands.iter().flat_map(Request::encoded).collect();
        bytes.extend(["EVAL", snapshot::SCRIPT, "0"].encoded());
        bytes.extend([b"PUBLISH".as_slice(), MARK, b""].encoded());
        self.client.send_bytes(&bytes);
    }

    /// What comes back from a request of so many commands.
    pub fn hear(&mut self, commands: usize) -> Said {
        let replies = self.client.read_many(commands);
        let keys = Snapshot::new(self.client.read());
        self.client.read();
        Said {
            replies,
            messages: self.messages(),
            keys,
        }
    }

    fn messages(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let Value::Array(parts) = self.hears.read() else {
                panic!("not a message");
            };
            let mut parts = parts.into_iter().map(bytes).skip(2);
            match (parts.next(), parts.next()) {
                (Some(channel), Some(_)) if channel == MARK => return messages,
                (Some(channel), Some(text)) => messages.push((channel, text)),
                _ => panic!("a message has four parts"),
            }
        }
    }

    pub fn alive(&self) {
        self.server.alive();
    }
}

/// Where the library is.
pub fn library() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lua-compat/rlock.lua")
}

pub fn bytes(value: Value) -> Bytes {
    match value {
        Value::BulkString(bytes) => bytes,
        Value::SimpleString(text) => text.into_bytes(),
        Value::Okay => b"OK".to_vec(),
        other => panic!("no string: {other:?}"),
    }
}
