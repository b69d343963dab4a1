//! The client against real servers, with the module and without.
#![allow(missing_docs)]

mod answers;
mod blocking;
mod callbacks;
mod cluster;
mod cut;
mod dropped;
mod forms;
mod give_way;
mod give_way_in_vain;
mod lost;
mod odd;
mod plain;
#[path = "../../../../tests/support/ports.rs"]
mod ports;
mod proxy;
mod quorum;
mod runtimes;
mod server;
mod silent;
mod sticky;
mod sticky_ends;
#[cfg(feature = "tls-rustls")]
mod tls;
mod waits;
mod wanted;
mod wanted_on_connections;
