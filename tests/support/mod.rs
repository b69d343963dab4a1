//! What the tests stand on: real servers, clients that are in control of every
//! byte, and waiting that polls instead of sleeping.

#![allow(dead_code, unused_imports)]

mod client;
mod clock;
mod listener;
mod process;
mod resp;
mod server;
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
