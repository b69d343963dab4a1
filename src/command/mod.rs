//! The commands, one file each: its arguments, what it asks of the core, its reply.

mod acquire;
mod args;
mod cancel;
mod cursor;
mod force;
mod glob;
mod heartbeat;
mod help;
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

use crate::server::{register, Command, Ctx, Spec};

macro_rules! commands {
    ($($command:ty),* $(,)?) => {
        /// Registers all of them. `category`: the server has one of ACLs for them. `false`: it
        /// refused one.
        pub fn register_all(ctx: Ctx<'_>, category: bool) -> bool {
            true $(&& register::<$command>(ctx, category))*
        }

        /// What the server learns of each.
        const SPECS: &[Spec] = &[$(<$command>::SPEC),*];
    };
}

commands!(
    acquire::AcquireCommand,
    release::ReleaseCommand,
    renew::RenewCommand,
    macquire::MacquireCommand,
    mrelease::MreleaseCommand,
    mrenew::MrenewCommand,
    cancel::CancelCommand,
    force::ForceCommand,
    limit::LimitCommand,
    info::InfoCommand,
    list::ListCommand,
    waiters::WaitersCommand,
    top::TopCommand,
    owner::OwnerCommand,
    heartbeat::HeartbeatCommand,
    help::HelpCommand,
);
