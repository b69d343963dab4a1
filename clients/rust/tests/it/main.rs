//! The client against real servers with the module.
#![allow(missing_docs)]

mod blocking;
mod cluster;
mod cut;
mod forms;
mod lost;
mod many;
mod proxy;
mod quorum;
mod server;
mod waits;
