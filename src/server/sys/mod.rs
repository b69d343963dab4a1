//! The module API: the only place where unsafe code compiles. What stands above it, all
//! the rest of the crate, is declared `forbid(unsafe_code)`.
//!
//! It promises that no use of what it shows can break memory. So no function here that
//! is safe takes a raw pointer; what the server lends for the time of a callback has a
//! lifetime (a context, arguments, an open key); what it gives is freed once, by its
//! owner; and the server's callbacks are functions of this module, which hand safe values
//! to a trait or to a function pointer, and let no panic cross into the server.
//!
//! Each function of the API that we call is looked up before, for an older server may lack
//! it. Of `redis-module` the bindings are used, its flags, what it has to say where a
//! command's keys are, and those of its wrappers that need no more than a context that is
//! valid, and a function that all servers have on which rlock runs: replies, `call::ask`.
//! Its other wrappers do not fit: they keep no lifetimes, take a text for a format, or lack
//! most of what is needed here (clients blocked on keys, half of the events).

#![deny(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

mod allocator;
mod api;
mod blocked;
mod call;
mod client;
mod clock;
mod command;
mod command_info;
mod count;
mod ctx;
mod emit;
mod entry;
mod events;
mod global;
mod guard;
mod info;
mod key;
mod later;
pub mod reply;
mod scan;
mod text;
mod user;
mod version;

pub use allocator::{taken, Counting};
pub use blocked::{block, Blocked, OnBlocked};
pub use call::{
    ask, bytes, call, hash_scan, is_missing, number_at, number_setting, setting, Scope,
};
pub use client::{address_of, is_subscribed};
pub use clock::MachineUs;
pub use command::{add_category, register, Handler, KeyArgs, Spec, Use};
pub use command_info::{describe, Doc, DocKind};
pub use ctx::{Ctx, Selected};
pub use emit::{
    count_a_write, notify, publish, publishes_events, replicate, signal_modified, KeyspaceEvent, To,
};
pub use events::{
    subscribe, subscribe_keys, unsubscribe, unsubscribe_keys, EventData, OnKey, OnServerEvent,
    ServerEvent,
};
pub use global::{Callback, Global};
pub use guard::{faults, under_way};
pub use info::{show_info, InfoValue, OnInfo, ServerInfo};
pub use key::{Access, OpenKey, Type};
pub use later::{keep_loop_awake, loop_is_kept_awake, LaterFn, Timer};
pub use scan::Scan;
pub use text::{FirstArgs, RawArgs, Text};
pub use user::User;
pub use version::{missing_function, set_options, take_settings, version};
