//! rlock: distributed locks as native commands of Redis and Valkey.
//!
//! The module at a glance: its settings, its hooks. Beyond this page, `command` has a
//! file for each command, `lock` the rules (who holds, who waits, who is next), and
//! `server` everything that speaks to the server.

// More lints are in Cargo.toml. These are for the module alone, without its tests: a
// table there holds for the suite and the benchmark too, which may panic and call the
// system.
// Here it is only denied, for this file: `server` allows it in one room.
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
#[forbid(unsafe_code)]
mod version;

use std::ffi::CStr;

#[cfg(not(test))]
use redis_module::alloc::RedisAlloc as Allocator;
use redis_module::RedisString;
use server::{unload, Counting, Ctx};
#[cfg(test)]
use std::alloc::System as Allocator;

const NAME: &CStr = c"rlock";

/// In the server, memory comes from the server, so that `used_memory` counts it.
#[global_allocator]
static ALLOCATOR: Counting<Allocator> = Counting(Allocator);

fn load(ctx: Ctx<'_>, args: &[RedisString]) -> bool {
    server::load(ctx, args, command::register_all)
}
