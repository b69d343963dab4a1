//! The whole family of locks at random, against a model of it: plain, read/write,
//! many keys at once, watchdogs, deadlocks, and others who change the keys.

mod changes;
mod clock;
mod compare;
mod compare_leases;
mod compare_permits;
mod compare_sessions;
mod conditions;
mod model;
mod ops;
mod others;
mod promises;
mod random;
mod renewals;
mod sessions;
mod shell;
mod steps;
mod walk;
mod world;
