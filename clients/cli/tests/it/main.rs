//! The real binary against real servers.
#![allow(missing_docs)]

mod at_least;
mod away;
mod commands;
mod ended;
mod ignored;
mod left;
mod pages;
mod plain;
#[path = "../../../../tests/support/ports.rs"]
mod ports;
mod run;
mod script;
mod server;
mod terminal;
mod tls;
mod tool;
mod unread;
