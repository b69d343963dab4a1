//! The server's side: everything that speaks to the server. It parses nothing and decides
//! nothing about locks; it carries requests to the core, the core's writes to
//! the keyspace, and its notices to those whom they are for.
//!
//! Three rules stand above the rest. Callbacks only record; the timer or a command
//! acts, through one gate. A grant ends answered or lost, exactly one of
//! them. A key's event is a hint, the key is the truth.
//!
//! The rooms are floors: each uses those above it in this list and none below.
//!
//! - `sys`: the module API, and all of the module's unsafe code.
//! - `state`: what is remembered between two callbacks, an owner for each part; `shell`
//!   puts them together.
//! - `keys`: how locks are laid out in keys, read.
//! - `outbound`: writes, replication, messages, events, replies, closed connections.
//! - `run`: decisions of the core, whether they may be made, and when the next is due.
//! - `inbound`: commands, key events, events of the server, the timer with its loop.
//! - `load`: loading and unloading.

#[forbid(unsafe_code)]
mod inbound;
#[forbid(unsafe_code)]
mod keys;
#[forbid(unsafe_code)]
mod load;
#[forbid(unsafe_code)]
mod outbound;
#[forbid(unsafe_code)]
mod run;
#[forbid(unsafe_code)]
mod shell;
#[forbid(unsafe_code)]
mod state;
#[allow(unsafe_code)]
mod sys;

pub use inbound::{register, Command, CommandCall, Quick};
pub use load::{load, unload};
pub use outbound::reply::Responder;
pub use sys::{Counting, Ctx, KeyArgs, Spec, Use};
