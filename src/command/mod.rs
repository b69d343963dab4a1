//! The commands, one file each: its arguments, what it asks of the core, its reply.

mod acquire;
mod args;
mod cancel;
mod cursor;
mod force;
mod glob;
mod info;
mod limit;
mod list;
mod macquire;
mod mrelease;
mod mrenew;
mod options;
mod owner;
mod release;
mod renew;
mod top;
mod waiters;

use crate::server::{register, Ctx};

/// Registers all of them. `false`: the server refused one.
pub fn register_all(ctx: Ctx<'_>) -> bool {
    register::<acquire::Acquire>(ctx)
        && register::<release::Release>(ctx)
        && register::<renew::Renew>(ctx)
        && register::<macquire::Macquire>(ctx)
        && register::<mrelease::Mrelease>(ctx)
        && register::<mrenew::Mrenew>(ctx)
        && register::<cancel::Cancel>(ctx)
        && register::<force::Force>(ctx)
        && register::<limit::Limit>(ctx)
        && register::<info::Info>(ctx)
        && register::<list::List>(ctx)
        && register::<waiters::Waiters>(ctx)
        && register::<top::Top>(ctx)
        && register::<owner::Owner>(ctx)
}
