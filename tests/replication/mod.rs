//! Masters and replicas: who may write and when, what a replica has of a lock, and what
//! becomes of locks when the roles change.

mod gone;
mod guard;
mod records;
mod refusals;
mod roles;
mod sentinel;
mod slow;
mod stall;
