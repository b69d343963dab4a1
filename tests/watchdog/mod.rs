//! WATCHDOG: holds that the server renews as long as a connection is open, and that end
//! with it.

mod bind;
mod close;
mod guard;
mod half_open;
mod heartbeat;
mod holds;
mod lost;
mod many;
mod max;
mod modes;
mod process;
mod refused;
mod renewal;
mod replica;
mod rights;
mod stall;
mod unload;
mod warnings;
