//! lua-compat/rlock.lua, as the tests speak to it: on a server without the module,
//! as a function library or as an EVAL script.

use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;

use crate::support::{int, map, text, Ask, Info, RawClient, Request, Server};

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
    /// A script must be told.
    in_cluster: bool,
}

impl Lua {
    #[track_caller]
    pub fn library(server: &Server) -> Self {
        let mut client = server.raw();
        let loaded = client.ask(&["FUNCTION", "LOAD", "REPLACE", &source()]);
        assert_eq!(text(loaded), "rlock1");
        Self {
            client,
            sha: None,
            in_cluster: false,
        }
    }

    #[track_caller]
    pub fn script(server: &Server) -> Self {
        let mut client = server.raw();
        let sha = client.text(&["SCRIPT", "LOAD", &script()]);
        let in_cluster = client.text("INFO cluster").contains("cluster_enabled:1");
        Self {
            client,
            sha: Some(sha),
            in_cluster,
        }
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
        let (sha, in_cluster) = (self.sha.clone(), self.in_cluster);
        Self {
            client,
            sha,
            in_cluster,
        }
    }

    /// What is sent for a request.
    #[track_caller]
    pub fn request<R: Request + ?Sized>(&self, request: &R) -> Vec<Vec<u8>> {
        let words = request.args();
        let (name, rest) = words.split_first().expect("a function");
        let name = [b"rlock1_", name.as_slice()].concat();
        let (keys, args) = if name.starts_with(b"rlock1_m") {
            let number = std::str::from_utf8(&rest[0]).expect("a number");
            rest[1..].split_at(number.parse().expect("a number"))
        } else {
            rest.split_at(rest.len().min(1))
        };
        self.words(&name, keys, args)
    }

    fn words(&self, name: &[u8], keys: &[Vec<u8>], args: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let numkeys = keys.len().to_string().into_bytes();
        let head = match &self.sha {
            None => vec![b"FCALL".to_vec(), name.to_vec(), numkeys],
            Some(sha) => vec![b"EVALSHA".to_vec(), sha.clone().into_bytes(), numkeys],
        };
        let named = match &self.sha {
            None => vec![],
            Some(_) if self.in_cluster => vec![b"CLUSTER".to_vec(), name.to_vec()],
            Some(_) => vec![name.to_vec()],
        };
        [&head, keys, &named, args].concat()
    }

    /// What is sent for a request with keys that are declared.
    pub fn with_keys(&self, name: &str, keys: &[&str], args: &[&str]) -> Vec<Vec<u8>> {
        let bytes = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let (keys, args): (Vec<_>, Vec<_>) = (bytes(keys), bytes(args));
        self.words(format!("rlock1_{name}").as_bytes(), &keys, &args)
    }

    #[track_caller]
    pub fn version(&mut self) -> String {
        let words = self.with_keys("version", &[], &[]);
        self.client.text(&words)
    }

    #[track_caller]
    pub fn info(&mut self, key: &str) -> Info {
        Info::of(self.ask(&["info", key]))
    }

    /// The numbers that INFO of `gpu` tells under these names.
    #[track_caller]
    pub fn numbers(&mut self, names: &str) -> Vec<i64> {
        let fields = map(self.ask("info gpu"));
        let of = |name: &str| int(fields[name].clone());
        names.split(' ').map(of).collect()
    }

    /// All keys but the counters of tokens.
    #[track_caller]
    pub fn keys(&mut self) -> Vec<(String, String, i64)> {
        let mut all = self.client.everything();
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

/// A request: `acquire job alice 1000`; where there are many keys, their number comes
/// first: `macquire 2 a b alice 1000`.
impl Ask for Lua {
    #[track_caller]
    fn ask<R: Request + ?Sized>(&mut self, request: &R) -> Value {
        let request = self.request(request);
        self.client.ask(&request)
    }
}
