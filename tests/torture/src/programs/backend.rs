//! What rounds without the module are: which of the locks' keepers there is in its place.

use std::io::{self, Error};

/// By what a client keeps its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Module,
    Functions,
    Script,
}

impl Backend {
    pub fn name(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Functions => "functions",
            Self::Script => "script",
        }
    }
}

/// The servers of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    WithModule,
    /// All drivers have this.
    Plain(Backend),
    /// Some have functions, others may not use them and have the script.
    Mixed,
}

impl Servers {
    pub fn read(word: &str) -> io::Result<Self> {
        match word {
            "functions" => Ok(Self::Plain(Backend::Functions)),
            "script" => Ok(Self::Plain(Backend::Script)),
            "mixed" => Ok(Self::Mixed),
            _ => Err(Error::other("--plain is functions, script or mixed")),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::WithModule => "",
            Self::Plain(backend) => backend.name(),
            Self::Mixed => "mixed",
        }
    }

    pub fn are_plain(self) -> bool {
        self != Self::WithModule
    }

    /// Of a client's process with that number.
    pub fn backend(self, process: usize) -> Backend {
        match self {
            Self::WithModule => Backend::Module,
            Self::Plain(backend) => backend,
            Self::Mixed if process.is_multiple_of(2) => Backend::Functions,
            Self::Mixed => Backend::Script,
        }
    }
}
