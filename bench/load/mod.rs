//! What every measurement is built from: a server of one's own, a connection
//! that costs the client little, prepared loads, and a poller for many sockets.

mod connection;
mod pipeline;
mod poller;
mod resp;
mod server;

pub use connection::Connection;
pub use pipeline::{Load, Rate};
pub use poller::Poller;
pub use resp::{command, integer, Expect};
pub use server::{raise_open_files, Server};

/// The result of anything that talks to a server.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
