//! What the command line says.

use std::env;
use std::io::{self, Error};
use std::path::PathBuf;

use crate::backend::Servers;

pub struct Options {
    pub clients: Vec<String>,
    pub servers: Servers,
    /// The real Redisson takes the same locks.
    pub redisson: bool,
    pub seed: u64,
    pub seconds: u64,
    pub round: Option<u32>,
    pub round_seconds: u64,
    /// No further round after one in which something was found.
    pub stop: bool,
    pub dir: PathBuf,
    pub module: PathBuf,
    /// Of the repository, where the clients and their drivers are.
    pub root: PathBuf,
    /// Where drivers are built.
    pub target: PathBuf,
}

impl Options {
    pub fn read() -> io::Result<Self> {
        let module = env::var_os("RLOCK_MODULE").ok_or_else(|| bad("RLOCK_MODULE is not set"))?;
        let root = env::var_os("RLOCK_ROOT").map_or_else(env::current_dir, |dir| Ok(dir.into()))?;
        let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let mut options = Self {
            clients: Vec::new(),
            servers: Servers::WithModule,
            redisson: false,
            seed: rlock_torture::clock::wall_ms() / 1000,
            seconds: 60,
            round: None,
            round_seconds: 20,
            stop: false,
            dir: env::temp_dir().join(format!("rlock-torture-clients-{}", std::process::id())),
            module: PathBuf::from(module).canonicalize()?,
            root: root.canonicalize()?,
            target,
        };
        for arg in env::args().skip(1) {
            options.take(&arg)?;
        }
        if options.clients.is_empty() {
            return Err(bad("--clients=\"python node\""));
        }
        std::fs::create_dir_all(&options.dir)?;
        options.dir = options.dir.canonicalize()?;
        std::fs::create_dir_all(&options.target)?;
        options.target = options.target.canonicalize()?;
        Ok(options)
    }

    fn take(&mut self, arg: &str) -> io::Result<()> {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        // `make` hands on what was not given as empty.
        if value.is_empty() && name != "--stop" {
            return Ok(());
        }
        match name {
            "--clients" => self.clients = value.split_whitespace().map(str::to_owned).collect(),
            "--plain" => self.servers = Servers::read(value)?,
            "--seed" => self.seed = number(value)?,
            "--seconds" => self.seconds = number(value)?,
            "--round" => self.round = Some(number(value)?),
            "--round-seconds" => self.round_seconds = number(value)?,
            "--dir" => self.dir = value.into(),
            "--redisson" => self.redisson = value != "0",
            "--stop" => self.stop = true,
            _ => return Err(bad(arg)),
        }
        Ok(())
    }
}

fn bad(what: &str) -> Error {
    Error::other(format!("not understood: {what}"))
}

fn number<N: std::str::FromStr>(text: &str) -> io::Result<N> {
    text.parse().map_err(|_| bad(text))
}
