//! What is remembered between two callbacks, each part with its own owner. Fields are
//! private where one depends on another; else they are plain cells.
//!
//! The server runs our code while the server's lock is held, on one thread at a time: as a rule
//! its main thread, with other modules perhaps one of theirs. But it may call back into us while
//! we call it: opening a key can expire it, and its notification runs in the middle of our
//! own command. So the owners lie in cells, none of them calls the server while it is
//! borrowed, and callbacks that can come at any time only record what they saw (`inbox`,
//! `clients`).

mod alarm;
mod clients;
pub mod clock;
mod core_cell;
mod counter_names;
mod inbox;
mod listeners;
mod outbox;
mod own_work;
mod permission;
mod pulse;
mod recovery;
mod server;
mod situation;
mod subscriptions;
mod unpublished;

pub use alarm::Alarm;
pub use clients::{Clients, WaitEnd, Wake};
pub use core_cell::CoreCell;
pub use counter_names::CounterNames;
pub use inbox::Inbox;
pub use listeners::Listeners;
pub use outbox::{IfUndelivered, Letter, Outbox};
pub use own_work::{OwnWork, UnderWay};
pub use permission::{Bar, Permission};
pub use pulse::{Pulse, Replicas};
pub use recovery::{DatabaseWalk, RecoveryScan, Task};
pub use server::{Publishing, ServerProfile, Wakeup};
pub use situation::Situation;
pub use subscriptions::Subscriptions;
pub use unpublished::Unpublished;
