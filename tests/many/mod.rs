//! MACQUIRE, MRELEASE, MRENEW: many keys at once, all of them or none.

mod access;
mod contention;
mod errors;
mod gone;
mod held;
mod leaving;
mod limits;
mod locks;
mod long;
mod replication;
mod waiting;
