//! A connection, and what is read from it.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use redis::{Client, ClientTlsConfig, Cmd, Connection, ProtocolVersion, TlsCertificates, Value};

use rlock_client::Error;
use rlock_client::finding::{self, Finding, Next};
use rlock_client::library::Speech;

use crate::args::{Backend, Tls};
use crate::exit::Failure;

/// How CLIENT LIST shows `rlock`.
pub const NAME: &str = concat!("rlock-cli-", env!("CARGO_PKG_VERSION"));

/// For so long a server may be frozen.
pub const PATIENCE: Duration = Duration::from_secs(5);

pub fn name() -> Cmd {
    redis::cmd("CLIENT").arg("SETNAME").arg(NAME).clone()
}

/// From a URL, `host:port` or `host`.
pub fn client(url: &str, tls: &Tls) -> Result<Client, Failure> {
    rlock_client::tls::choose_provider();
    let plain = if tls.is_wanted() { "rediss" } else { "redis" };
    let mut address = match url {
        _ if url.contains("://") => url.to_owned(),
        _ if url.contains(':') && !url.ends_with(']') => format!("{plain}://{url}/"),
        _ => format!("{plain}://{url}:6379/"),
    };
    let is_secure = ["rediss://", "valkeys://"]
        .iter()
        .any(|s| address.starts_with(s));
    if tls.is_wanted() && !is_secure {
        let text = "--cacert, --cert, --key and --insecure are for TLS: rediss://host:port/";
        return Err(Failure::usage(text));
    }
    if tls.insecure && !address.contains('#') {
        address += "#insecure";
    }
    // Without the text: there may be a password in it.
    let wrong = || {
        Failure::usage(
            "the server's address is a URL, redis://host:port/ or rediss://host:port/ (TLS), or host:port",
        )
    };
    let mut client = Client::open(address).map_err(|_| wrong())?;
    if tls.is_wanted() {
        let info = client.get_connection_info().clone();
        client = Client::build_with_tls(info, tls.certificates()?)
            .map_err(|error| Failure::usage(format!("TLS: {error}")))?;
    }
    let info = client.get_connection_info().clone();
    let settings = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3);
    Client::open(info.set_redis_settings(settings)).map_err(|_| wrong())
}

impl Tls {
    fn is_wanted(&self) -> bool {
        self.cacert.is_some() || self.cert.is_some() || self.insecure
    }

    fn certificates(&self) -> Result<TlsCertificates, Failure> {
        let client_tls = match (&self.cert, &self.cert_key) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: pem("--cert", cert)?,
                client_key: pem("--key", key)?,
            }),
            _ => None,
        };
        let root_cert = self
            .cacert
            .as_deref()
            .map(|file| pem("--cacert", file))
            .transpose()?;
        Ok(TlsCertificates {
            client_tls,
            root_cert,
        })
    }
}

fn pem(option: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    let wrong = |why: &str| Failure::usage(format!("{option} {}: {why}", file.display()));
    let text = std::fs::read(file).map_err(|error| wrong(&error.to_string()))?;
    match String::from_utf8_lossy(&text).contains("-----BEGIN ") {
        true => Ok(text),
        false => Err(wrong("there is no PEM in it (-----BEGIN CERTIFICATE-----)")),
    }
}

pub struct Server {
    connection: Connection,
    backend: Backend,
    /// Once it is known.
    speech: Option<Speech>,
}

impl Server {
    pub fn connect(client: &Client, backend: Backend) -> Result<Self, Failure> {
        let mut connection = client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        // Who may not say so goes on without.
        _ = name().query::<Value>(&mut connection);
        Ok(Self {
            connection,
            backend,
            speech: None,
        })
    }

    pub fn ask(&mut self, command: &Cmd) -> Result<Value, Failure> {
        let reply = command.query::<Value>(&mut self.connection);
        Ok(reply?.extract_error()?)
    }

    /// How it is spoken to. Where it has no module the library is loaded.
    pub fn speech(&mut self) -> Result<Speech, Failure> {
        if let Some(speech) = &self.speech {
            return Ok(speech.clone());
        }
        let speech = self.find(self.backend == Backend::Module)?;
        self.speech = Some(speech.clone());
        Ok(speech)
    }

    /// `task`, such as `rlock ls`, is nothing that the library could do.
    pub fn needs_module(&mut self, task: &str) -> Result<(), Failure> {
        match self.find(true) {
            Ok(_) => Ok(()),
            Err(error @ Error::Refused { .. }) => {
                let failure = Failure::from(error);
                let text = format!("{task} needs the module: {}", failure.text);
                Err(Failure::new(failure.code, text))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn find(&mut self, needs_module: bool) -> Result<Speech, Error> {
        let mut finding = Finding::new(false, needs_module);
        let mut question = finding::first();
        loop {
            let reply = question.query::<Value>(&mut self.connection);
            match finding.next(finding::reply(reply))? {
                Next::Found(speech) => return Ok(speech),
                Next::Ask(next) => question = next,
            }
        }
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
