//! What comes in: commands, key events, events of the server, the timer. These functions
//! record what they saw, or have `run` do what is due.

mod advice;
mod command;
mod docs;
mod info_section;
mod inspect;
mod key_events;
mod other_modules;
mod quick;
mod recovery;
mod register;
mod server_events;
mod tick;
mod timer;
mod watching;

pub use command::CommandCall;
pub use info_section::InfoSection;
pub use quick::Quick;
pub use recovery::begin as begin_recovery_scan;
pub use register::{register, Command};
pub use server_events::{look_around, subscribe};
pub use timer::on_timer;
pub use watching::subscribe_closes;
