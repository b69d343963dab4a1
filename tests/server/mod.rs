//! The module in its server: loading, unloading, the clock, and requests that make no sense.

mod clock;
mod field_ends;
mod first_run;
mod idle;
mod install;
mod loading;
mod memory;
mod missing_keys;
mod neighbour;
mod robust;
mod unload;
