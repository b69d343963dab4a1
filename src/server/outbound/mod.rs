//! What goes out: writes and their replication, messages, events, replies, closed
//! connections. Nothing here decides anything.

pub mod answers;
pub mod closes;
mod fair_queue;
pub mod messages;
pub mod notices;
mod payload;
pub mod publish;
pub mod reach;
pub mod records;
pub mod replication;
pub mod reply;
pub mod write;
