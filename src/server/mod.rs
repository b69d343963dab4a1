//! The shell: everything that speaks to the server, and all of the module's
//! `unsafe`. It parses nothing and decides nothing about locks; it carries
//! requests to the core and the core's effects to the server.
//!
//! Three rules stand above the rest. Callbacks only record; a timer, a job or a
//! command acts, through one gate. A grant ends answered or lost, exactly one of
//! them. A key's event is a hint, the key is the truth.

mod alone;
mod blocking;
mod closing;
mod command;
mod command_info;
mod counter;
mod effects;
mod events;
mod fair_queue;
mod ffi;
mod gate;
mod hash;
mod inbox;
mod info_section;
mod key_events;
mod keyspace;
mod lease_keys;
mod module;
mod notes;
mod opened;
mod pending;
mod publish;
mod pulse;
mod records;
mod replication;
mod reply;
mod serve;
mod shell;
mod slots;
mod surroundings;
mod timer;
mod turns;
mod version;
mod watching;
mod write;

pub use command::{register, Call, Command, Keys, Use};
pub use ffi::Ctx;
pub use module::{load, unload};
pub use reply::Responder;
