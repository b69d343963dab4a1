//! What is said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser as Name;
use clap::{Args, Parser, Subcommand};

use crate::time::parse;

/// Runs commands under distributed locks, and shows the locks of a server.
///
/// Times are written 250ms, 10s, 5m, 1h or 1h30m.
#[derive(Debug, Parser)]
#[command(name = "rlock", version, max_term_width = 100, after_help = EXITS)]
pub struct Cli {
    /// The server: redis://user:password@host:port/db, rediss:// for TLS, or host:port
    #[arg(
        long,
        global = true,
        env = "RLOCK_URL",
        default_value = "127.0.0.1:6379"
    )]
    #[arg(hide_env_values = true)]
    pub url: String,
    /// What the server has to have: its module rlock, or any, also none
    ///
    /// Without the module `run`, `who`, `watch` and `force` go by a function library, which
    /// rlock loads; `ls`, `waiters` and `top` need the module.
    #[arg(long, global = true, value_enum, default_value_t = Backend::Any)]
    pub backend: Backend,
    #[command(flatten)]
    pub tls: Tls,
    #[command(subcommand)]
    pub task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    Any,
    Module,
}

/// For rediss://. With one of these host:port is an address over TLS too.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct Tls {
    /// Trust servers of the authorities in this file (PEM), not of the system's
    #[arg(long, global = true, value_name = "FILE", env = "RLOCK_CACERT")]
    pub cacert: Option<PathBuf>,
    /// Show the server this certificate (PEM)
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "RLOCK_CERT",
        requires = "cert_key"
    )]
    pub cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long = "key", id = "cert_key", global = true, value_name = "FILE")]
    #[arg(env = "RLOCK_CERT_KEY", requires = "cert")]
    pub cert_key: Option<PathBuf>,
    /// Trust whoever answers
    #[arg(long, global = true)]
    pub insecure: bool,
}

pub const EXITS: &str = "\
Exit status:
  0-255  of `run`: that of the command itself; 128 and the signal's number if one ended it
  1      `force` freed nothing, `who` found nobody
  115    the lock was not acquired: somebody else has it
  116    the lock was lost before the command had ended
  117    the server could not be reached
  118    the server refused (DEADLOCK, NOPERM, WRONGTYPE and others)
  125    wrong usage, or rlock itself failed
  126    the command cannot be run
  127    the command was not found";

#[derive(Debug, Subcommand)]
pub enum Task {
    Run(Run),
    Ls(Ls),
    /// Shows who holds a lock
    Who {
        #[arg(value_parser = Name::new())]
        key: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows who waits for a lock, in the order in which they will be served
    Waiters {
        #[arg(value_parser = Name::new())]
        key: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    Top(Top),
    Force(Force),
    /// Prints what happens to a lock, until ctrl-c
    ///
    /// It needs keyspace notifications (CONFIG SET notify-keyspace-events Kd) to see all of
    /// it; without them it looks ten times a second.
    Watch {
        #[arg(value_parser = Name::new())]
        key: String,
    },
    /// Prints completions for a shell
    Completion {
        shell: clap_complete::Shell,
    },
    /// Prints the man page
    Man,
}

/// Runs a command under a lock
///
/// The lock is a lease that rlock renews. If it cannot, the command and all processes that come
/// from it get TERM at two thirds of the lease and KILL before it ends; so they do if rlock
/// itself is killed. What is left of them when the command has ended is ended too. RLOCK_KEY,
/// RLOCK_TOKEN and RLOCK_OWNER are in the command's environment.
#[derive(Debug, Args)]
pub struct Run {
    /// The lock
    #[arg(value_parser = Name::new())]
    pub key: String,
    /// Wait in the queue for so long, or `forever` [default: do not wait]
    #[arg(long, value_parser = wait)]
    pub wait: Option<Wait>,
    /// Beside other readers
    #[arg(long, conflicts_with = "limit")]
    pub read: bool,
    /// One of so many that may run at a time
    #[arg(long)]
    pub limit: Option<u32>,
    /// How long the lock lasts when nobody renews it
    #[arg(long, value_parser = parse, default_value = "30s")]
    pub lease: Duration,
    /// Keep the lock for so long after it was acquired, though the command and rlock have ended, so
    /// that a clock that is behind does not run it again
    #[arg(long, value_parser = parse, value_name = "TIME", conflicts_with = "quorum")]
    pub at_least: Option<Duration>,
    /// By a majority of these servers (host:port or URLs), in the place of --url
    #[arg(long, value_delimiter = ',', value_parser = Name::new())]
    #[arg(conflicts_with_all = ["read", "limit"])]
    pub quorum: Vec<String>,
    /// Say nothing but errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what happens
    #[arg(long, short)]
    pub verbose: bool,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug)]
pub enum Wait {
    For(Duration),
    Forever,
}

fn wait(text: &str) -> Result<Wait, String> {
    match text {
        "forever" => Ok(Wait::Forever),
        _ => parse(text).map(Wait::For),
    }
}

/// Lists the locks that are held
#[derive(Debug, Args)]
pub struct Ls {
    /// Only keys that fit, as for SCAN: jobs:*
    #[arg(long = "match", value_name = "PATTERN", value_parser = Name::new())]
    pub pattern: Option<String>,
    /// Only of owners whose name begins so
    #[arg(long, value_name = "PREFIX", value_parser = Name::new())]
    pub owner: Option<String>,
    /// Only those that are held for longer
    #[arg(long, value_parser = parse, value_name = "TIME")]
    pub held_longer: Option<Duration>,
    /// As JSON, one lock a line
    #[arg(long)]
    pub json: bool,
}

/// Shows the locks that are waited for most, again each second; q quits
#[derive(Debug, Args)]
pub struct Top {
    /// Once, and then end; also where the output is no terminal
    #[arg(long)]
    pub once: bool,
    /// So many locks at most
    #[arg(long, short = 'n', default_value_t = 50)]
    pub count: u32,
}

/// Frees a lock, whoever holds it
///
/// Its holders are notified and the first waiter gets it. They may be at work still: only
/// storage that checks tokens is safe from them.
#[derive(Debug, Args)]
pub struct Force {
    /// The lock
    #[arg(value_parser = Name::new())]
    pub key: String,
    /// Only if this owner holds it
    #[arg(long, conflicts_with = "token", value_parser = Name::new())]
    pub owner: Option<String>,
    /// Only if it is held with this token
    #[arg(long)]
    pub token: Option<u64>,
    /// Do not ask back
    #[arg(long, short)]
    pub yes: bool,
}
