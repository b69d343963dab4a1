//! The real binary against real servers.
#![allow(missing_docs)]

mod commands;
mod ended;
mod run;
mod server;
mod terminal;
mod tool;
