//! Owners that wait for each other: which request is refused, which is let past, and what
//! is no ring.

mod gone;
mod modes;
mod rings;
mod storm;
mod way_out;
