//! `lua-compat/`, the function library for servers without the module: that it does what the
//! module does, in the same words.

mod access;
mod before_7;
mod caller;
mod cluster;
mod conditions;
mod differential;
mod errors;
mod example;
mod leases;
mod loading;
mod many;
mod memory;
mod modes;
mod module;
mod nesting;
mod permits;
mod pools;
mod queue;
mod readers;
mod refused;
mod tokens;
mod wakeup;
mod wrongtype;
