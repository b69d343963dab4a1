//! Read/write locks: READ and WRITE on the commands, their layout, which is Redisson's,
//! and who may hold beside whom.

mod by_hand;
mod events;
mod foreign;
mod gone;
mod layout;
mod leases;
mod leaving;
mod leftovers;
mod modes;
mod names;
mod nesting;
mod order;
mod replication;
mod scripts;
mod upgrade;
mod wakeup;
