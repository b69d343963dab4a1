//! The shell: everything that speaks to the server, and all of the module's
//! `unsafe`. It parses nothing and decides nothing about locks; it carries
//! requests to the core and the core's effects to the server.
//!
//! Three rules stand above the rest. Callbacks only record; a timer, a job or a
//! command acts, through one gate. A grant ends answered or lost, exactly one of
//! them. A key's event is a hint, the key is the truth.

mod blocking;
mod command;
mod effects;
mod events;
mod ffi;
mod gate;
mod inbox;
mod key_events;
mod keyspace;
mod module;
mod notes;
mod publish;
mod replication;
mod reply;
mod serve;
mod shell;
mod timer;
mod version;

pub use command::{register, Call, Command};
pub use ffi::Ctx;
pub use module::{load, unload};
pub use reply::Responder;
