//! Tests of the core, outside a server: cases of the specification one by one,
//! and random runs against a model of it.

mod foreign;
mod grants;
mod keys;
mod model;
mod ops;
mod plain;
mod random;
mod shell;
mod time;
mod waiting;
mod world;
