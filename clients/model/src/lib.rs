//! A model of rlock's quorum: several servers, the clients that lock by a majority of
//! them, and a network that loses, delays and repeats. It is walked to its end, breadth
//! first, and in each state the promises are looked at. See the README.

pub mod action;
pub mod attempt;
pub mod rules;
pub mod runs;
pub mod server;
pub mod state;
pub mod step;
pub mod trace;
pub mod twins;
pub mod walk;
