//! rlock: distributed locks as native commands of Redis and Valkey.
//!
//! The module at a glance: its settings, its hooks. Beyond this page, `command` has a
//! file for each command, `lock` the rules (who holds, who waits, who is next), and
//! `server` everything that speaks to the server.

// More lints are in Cargo.toml. These are for the module alone, without its tests: a
// table there holds for the suite and the benchmark too, which may panic and call the
// system.
// Here it is only denied, for this file: what `redis_module!` expands to is unsafe, and
// is let pass as it comes from another crate.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::arithmetic_side_effects
    )
)]

#[forbid(unsafe_code)]
mod command;
#[forbid(unsafe_code)]
mod config;
#[forbid(unsafe_code)]
mod error;
/// Properties that hostile input is tried on.
#[cfg(test)]
#[forbid(unsafe_code)]
#[path = "../tests/hostile/fuzz/mod.rs"]
mod hostile;
#[forbid(unsafe_code)]
mod lock;
#[forbid(unsafe_code)]
mod redisson;
/// Forbids it too, but for `server::sys`.
mod server;

use redis_module::{redis_module, Context, RedisString, Status};
use server::unload;

/// In the server, memory comes from the server, so that `used_memory` counts it.
#[cfg(not(test))]
use redis_module::alloc::RedisAlloc as Allocator;
/// Tests of the core run outside a server.
#[cfg(test)]
use std::alloc::System as Allocator;

fn load(context: &Context, args: &[RedisString]) -> Status {
    server::load(context, args, command::register_all)
}

redis_module! {
    name: "rlock",
    version: 1,
    allocator: (Allocator, Allocator),
    data_types: [],
    init: load,
    deinit: unload,
}
