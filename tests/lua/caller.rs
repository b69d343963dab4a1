//! lua-compat/rlock.lua, as the tests speak to it: on a server without the module,
//! as a function library or as an EVAL script.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;

use crate::support::ask::{error_line, list, map, text, Ask};
use crate::support::read_write::everything;
use crate::support::{RawClient, Server};

pub fn lua_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lua-compat")
}

pub fn source() -> String {
    fs::read_to_string(lua_dir().join("rlock.lua")).expect("rlock.lua")
}

/// The EVAL script: all but the first line.
pub fn script() -> String {
    let source = source();
    let (_, script) = source.split_once('\n').expect("lines");
    script.to_owned()
}

/// A server that has no module.
pub fn bare() -> Server {
    Server::start_bare(&[])
}

/// A connection that calls the functions in one of the two forms.
pub struct Lua {
    pub client: RawClient,
    /// Of the script; none: the library.
    sha: Option<String>,
}

impl Lua {
    #[track_caller]
    pub fn library(server: &Server) -> Self {
        let mut client = server.raw();
        let loaded = client.call(&["FUNCTION", "LOAD", "REPLACE", &source()]);
        assert_eq!(text(loaded), "rlock");
        Self { client, sha: None }
    }

    #[track_caller]
    pub fn script(server: &Server) -> Self {
        let mut client = server.raw();
        let sha = text(client.call(&["SCRIPT", "LOAD", &script()]));
        let sha = Some(sha);
        Self { client, sha }
    }

    /// The library, and then the script, each on a server of its own.
    pub fn both() -> impl Iterator<Item = (Server, Self)> {
        [Self::library, Self::script].into_iter().map(|form| {
            let server = bare();
            let lua = form(&server);
            (server, lua)
        })
    }

    pub fn is_script(&self) -> bool {
        self.sha.is_some()
    }

    /// The same form on another connection.
    pub fn on(&self, client: RawClient) -> Self {
        let sha = self.sha.clone();
        Self { client, sha }
    }

    /// A request: `acquire job alice 1000`; where there are many keys, their number
    /// comes first: `macquire 2 a b alice 1000`.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Value {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.call(&words)
    }

    #[track_caller]
    pub fn call(&mut self, words: &[&[u8]]) -> Value {
        let request = self.request(words);
        self.client.call(&request)
    }

    /// What is sent for it.
    #[track_caller]
    pub fn request(&self, words: &[&[u8]]) -> Vec<Vec<u8>> {
        let (name, rest) = words.split_first().expect("a function");
        let name = [b"rlock_", *name].concat();
        let (keys, args) = if name.starts_with(b"rlock_m") {
            let number = std::str::from_utf8(rest[0]).expect("a number");
            rest[1..].split_at(number.parse().expect("a number"))
        } else {
            rest.split_at(rest.len().min(1))
        };
        let numkeys = keys.len().to_string().into_bytes();
        let owned = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
        let head = match &self.sha {
            None => vec![b"FCALL".to_vec(), name.clone(), numkeys],
            Some(sha) => vec![b"EVALSHA".to_vec(), sha.clone().into_bytes(), numkeys],
        };
        let named = match &self.sha {
            None => vec![],
            Some(_) => vec![name],
        };
        [head, owned(keys), named, owned(args)].concat()
    }

    #[track_caller]
    pub fn int(&mut self, line: &str) -> i64 {
        match self.ask(line) {
            Value::Int(number) => number,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[track_caller]
    pub fn refused(&mut self, line: &str) -> bool {
        match self.ask(line) {
            Value::Nil => true,
            Value::Int(_) => false,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[track_caller]
    pub fn error(&mut self, line: &str) -> String {
        match self.ask(line) {
            error @ Value::ServerError(_) => error_line(error),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[track_caller]
    pub fn info(&mut self, key: &str) -> BTreeMap<String, Value> {
        map(self.ask(&format!("info {key}")))
    }

    #[track_caller]
    pub fn mode(&mut self, key: &str) -> String {
        text(self.info(key)["mode"].clone())
    }

    /// Who holds the lock, in the order of INFO.
    #[track_caller]
    pub fn holders(&mut self, key: &str) -> Vec<BTreeMap<String, Value>> {
        let holders = self.info(key)["holders"].clone();
        list(holders).into_iter().map(map).collect()
    }

    /// All keys but the counters of tokens.
    #[track_caller]
    pub fn keys(&mut self) -> Vec<(String, String, i64)> {
        let mut all = everything(&mut self.client);
        all.retain(|(key, ..)| !key.starts_with("redisson_lock_token:"));
        all
    }

    /// Nothing is left of any lock.
    #[track_caller]
    pub fn nothing_left(&mut self) {
        assert_eq!(self.keys(), []);
    }

    #[track_caller]
    pub fn flush(&mut self) {
        self.client.ok("FLUSHALL");
    }
}
