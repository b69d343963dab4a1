//! What the tests stand on: real servers, clients that are in control of every
//! byte, one way to ask and to look, and waiting that polls instead of sleeping.

mod aof;
mod ask;
mod c_library;
mod client;
mod clock;
mod cluster;
mod each;
mod holder;
mod info;
mod keys;
mod leave;
mod listener;
mod module;
mod over;
mod permits;
mod ports;
mod process;
mod random;
mod replica;
mod reply;
mod resp;
mod server;
mod session;
mod time;
mod untouched;
mod user;
mod version;
mod wait;
mod waiter;
mod wire;

pub use aof::{aof, AOF};
pub use ask::{Ask, Request};
pub use c_library::library;
pub use client::RawClient;
pub use clock::Clock;
pub use cluster::{
    asking, bare_cluster, cluster, cluster_of, cluster_with, has_subcommand, id, is_try_again,
    keys_in_slot, keys_of, orders, slot_of, two_bare_nodes, two_nodes, two_nodes_with_counters,
    Move,
};
pub use each::each;
pub use holder::{Bound, LONG};
pub use info::Info;
pub use keys::lease_key;
pub use leave::Leave;
pub use listener::Listener;
pub use over::Over;
pub use permits::{without_deadlines, Permits};
pub use process::{signal, spawn, Process};
pub use random::Random;
pub use replica::{pair, same_on_both, unharmed};
pub use reply::{bulk, code, error, int, int_or_none, list, map, pong, text, token};
pub use server::{module, Server};
pub use session::{queued, Session};
pub use time::{ends_from, lease_from, longest, now_ms, now_us, pass};
pub use untouched::Untouched;
pub use user::user;
pub use version::{Flavour, Version};
pub use wait::{eventually, eventually_within, poll, wait_for, BOUND};
pub(crate) use waiter::both_ways;
pub use waiter::{Waiter, Way};
pub use wire::Wire;
