//! Many at once: in a process of their own, for they keep its session's threads from all others, and
//! one test after the other.
#![allow(missing_docs)]

mod many;
#[path = "../../../../tests/support/ports.rs"]
mod ports;
#[allow(dead_code)] // what only the other tests need
#[path = "../it/server.rs"]
mod server;
