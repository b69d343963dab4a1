//! A connection, and what is read from it.

use std::collections::HashMap;
use std::time::Duration;

use redis::{Client, Cmd, Connection, ProtocolVersion, Value};

use crate::exit::Failure;

/// From a URL, `host:port` or `host`.
pub fn client(url: &str) -> Result<Client, Failure> {
    let address = match url {
        _ if url.contains("://") => url.to_owned(),
        _ if url.contains(':') && !url.ends_with(']') => format!("redis://{url}/"),
        _ => format!("redis://{url}:6379/"),
    };
    // Without the text: there may be a password in it.
    let wrong =
        || Failure::usage("the server's address is a URL, redis://host:port/, or host:port");
    let client = Client::open(address).map_err(|_| wrong())?;
    let info = client.get_connection_info().clone();
    let settings = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3);
    Client::open(info.set_redis_settings(settings)).map_err(|_| wrong())
}

pub struct Server(Connection);

impl Server {
    pub fn connect(client: &Client) -> Result<Self, Failure> {
        let patience = Duration::from_secs(5);
        let connection = client.get_connection_with_timeout(patience)?;
        connection.set_read_timeout(Some(patience))?;
        connection.set_write_timeout(Some(patience))?;
        Ok(Self(connection))
    }

    pub fn ask(&mut self, command: &Cmd) -> Result<Value, Failure> {
        Ok(command.query::<Value>(&mut self.0)?.extract_error()?)
    }

    /// `INFO rlock` and others: by name.
    pub fn section(&mut self, name: &str) -> Result<HashMap<String, String>, Failure> {
        let text = self.ask(redis::cmd("INFO").arg(name))?;
        let text = words(&text);
        let field = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        Ok(text.lines().filter_map(field).collect())
    }
}

/// The fields of a map.
pub struct Fields(HashMap<String, Value>);

impl Fields {
    pub fn of(value: Value) -> Self {
        let Value::Map(pairs) = value else {
            return Self(HashMap::new());
        };
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (words(&name), value))
                .collect(),
        )
    }

    /// Those of each map of an array.
    pub fn each(value: Value) -> Vec<Self> {
        match value {
            Value::Array(maps) => maps.into_iter().map(Self::of).collect(),
            _ => Vec::new(),
        }
    }

    pub fn text(&self, name: &str) -> String {
        self.0.get(name).map(words).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name)? {
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or(Value::Nil)
    }
}

pub fn words(value: &Value) -> String {
    match value {
        Value::BulkString(text) => String::from_utf8_lossy(text).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::VerbatimString { text, .. } => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}
