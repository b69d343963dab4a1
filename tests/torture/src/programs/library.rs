//! The library of `lua-compat/`, called as by somebody who has no client: its functions, or the
//! same text as a script.

use std::fs;
use std::io::{self, Error};
use std::path::Path;
use std::sync::Arc;

use crate::backend::Backend;
use crate::link::Link;
use crate::resp::Value;

/// What stands beside a lock, and may be declared.
const BESIDE: [&str; 3] = ["redisson_lock_token", "rlock1_queue", "rlock1_places"];

#[derive(Clone)]
pub struct Library {
    text: Arc<str>,
    by: Backend,
    /// Of the script, once a server has said it.
    sha: String,
}

impl Library {
    pub fn read(root: &Path, by: Backend) -> io::Result<Self> {
        let text = fs::read_to_string(root.join("lua-compat/rlock.lua"))?;
        let text = match by {
            // Not the clients' own script, which may be in the server already.
            Backend::Script => text
                .split_once('\n')
                .map(|(_, rest)| format!("{rest}-- By torture.\n"))
                .unwrap_or_default(),
            _ => text,
        };
        Ok(Self {
            text: text.into(),
            by,
            sha: "0".repeat(40),
        })
    }

    /// Loads it, as often as the server says that it has lost it.
    pub fn call(
        &mut self,
        link: &mut Link,
        name: &str,
        (locks, declares): (&[&str], bool),
        rest: &[&str],
    ) -> io::Result<Value> {
        loop {
            let reply = link.call(&self.words(name, (locks, declares), rest))?;
            match reply {
                Value::Error(line) if line.contains("Function not found") => self.load(link)?,
                Value::Error(line) if line.starts_with("NOSCRIPT") => self.load(link)?,
                other => return Ok(other),
            }
        }
    }

    /// As `call`; an error reply is an error.
    pub fn must(&mut self, link: &mut Link, name: &str, key: &str) -> io::Result<Value> {
        match self.call(link, name, (&[key], false), &[])? {
            Value::Error(error) => Err(Error::other(format!("{name} {key}: {error}"))),
            value => Ok(value),
        }
    }

    fn words(&self, name: &str, (locks, declares): (&[&str], bool), rest: &[&str]) -> Vec<String> {
        let mut keys: Vec<String> = locks.iter().map(|key| (*key).to_owned()).collect();
        if declares {
            let beside = |key: &&str| BESIDE.map(|prefix| format!("{prefix}:{{{key}}}"));
            keys.extend(locks.iter().flat_map(beside));
        }
        let (command, first, then) = match self.by {
            Backend::Script => ("EVALSHA", self.sha.as_str(), Some(name)),
            _ if name == "rlock1_info" => ("FCALL_RO", name, None),
            _ => ("FCALL", name, None),
        };
        let mut words = vec![command.to_owned(), first.to_owned(), keys.len().to_string()];
        words.extend(keys);
        words.extend(then.map(str::to_owned));
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        words
    }

    fn load(&mut self, link: &mut Link) -> io::Result<()> {
        let kind = match self.by {
            Backend::Script => "SCRIPT",
            _ => "FUNCTION",
        };
        match link.call(&[kind, "LOAD", &self.text])? {
            Value::Error(line) if line.contains("already exists") => Ok(()),
            Value::Error(line) => Err(Error::other(line)),
            Value::Text(sha) | Value::Simple(sha) => {
                self.sha = sha;
                Ok(())
            }
            other => Err(Error::other(format!("{kind} LOAD: {other:?}"))),
        }
    }
}
