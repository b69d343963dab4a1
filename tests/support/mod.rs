//! What the tests stand on: real servers, clients that are in control of every
//! byte, and waiting that polls instead of sleeping.

#![allow(dead_code, unused_imports)]

pub mod ask;
mod client;
mod clock;
mod listener;
pub mod locks;
pub mod look;
pub mod nodes;
mod process;
pub mod read_write;
mod resp;
mod server;
pub mod setup;
pub mod untouched;
mod version;
mod wait;

pub use client::RawClient;
pub use clock::Clock;
pub use listener::Listener;
pub use process::{signal, spawn};
pub use resp::encode;
pub use server::Server;
pub use version::{Flavour, Version};
pub use wait::{eventually, eventually_within, poll, wait_for, BOUND};
