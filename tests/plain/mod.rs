//! One owner at a time: RLOCK.ACQUIRE, RELEASE, RENEW and FORCE, who holds a lock and how
//! often, its tokens, what is written and what is told.

mod acquire;
mod bad_conditions;
mod binary;
mod conditions;
mod errors;
mod events;
mod experiments;
mod expiry;
mod fence;
mod fencing;
mod fencing_changed;
mod force;
mod nesting;
mod new_tokens;
mod no_ttl;
mod owner;
mod processes;
mod release;
mod renew;
mod replication;
mod tokens;
mod unobserved;
mod wrongtype;
