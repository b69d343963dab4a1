//! The real binary against real servers.
#![allow(missing_docs)]

mod away;
mod commands;
mod ended;
mod left;
mod run;
mod script;
mod server;
mod terminal;
mod tool;
