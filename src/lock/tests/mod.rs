//! Tests of the core, outside a server: cases of the specification one by one, and
//! (in `family`) random runs and a model checker against a model of it.

mod away;
mod crowds;
mod cycles;
mod family;
mod foreign;
mod grants;
mod keys;
mod parts;
mod plain;
mod request;
mod run;
mod server;
mod shared;
mod shell;
mod time;
mod turns;
mod vanishing;
mod waiting;
