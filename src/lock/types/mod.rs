//! Types for what must not be mixed. They stand below all else: nothing here knows of
//! locks.

mod client;

pub use client::ClientId;
