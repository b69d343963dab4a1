//! The suite: every test talks to a real server that has the module loaded.

mod admin;
mod cluster;
mod deadlock;
mod differential;
mod documents;
mod lua;
mod many;
mod permits;
mod plain;
mod read_write;
mod recovery;
mod replication;
mod server;
mod sessions;
mod subscribers;
mod support;
mod versions;
mod waiting;
mod watchdog;
