//! What every measurement is built from: a server of one's own, a connection
//! that costs the client little, prepared loads, and a poller for many sockets.

mod connection;
mod counts;
mod pipeline;
mod poller;
mod processor;
mod program;
mod resp;
mod server;
mod session;

pub use connection::Connection;
pub use counts::Counts;
pub use pipeline::{Load, Rate};
pub use poller::Poller;
pub use processor::{Processor, Spent};
pub use program::Crew;
pub use resp::{bulk, command, integer, parts, Expect};
pub use server::{end_with_this_process, may_open, raise_open_files, Server, Setup};
pub use session::{Granted, Session};

/// The result of anything that talks to a server.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
