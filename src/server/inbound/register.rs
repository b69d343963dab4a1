//! Commands as the server calls them: registration, and where a call enters.

use std::cell::RefCell;
use std::marker::PhantomData;

use super::command::CommandCall;
use super::{docs, watching, Quick};
use crate::error::Error;
use crate::server::outbound::replication::{By, Replication};
use crate::server::outbound::reply::Responder;
use crate::server::run::{self, Caller};
use crate::server::shell::SHELL;
use crate::server::sys::{self, Ctx, FirstArgs, Handler, KeyArgs, RawArgs, Spec};

/// A command of the module: its description for the server, and what it does.
pub trait Command {
    const SPEC: Spec;

    /// The reply, if it is to be had by the quick way; else nothing has happened.
    fn quick(_: &Quick<'_>) -> Option<i64> {
        None
    }

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error>;
}

/// Registers a command. `false`: the server refused it.
/// `category`: the server has one for ours.
pub fn register<C: Command>(ctx: Ctx<'_>, category: bool) -> bool {
    let name = C::SPEC.name;
    let own = if category { " rlock" } else { "" };
    if !sys::register::<EntryPoint<C>>(ctx, &C::SPEC, format!("{}{own}", C::SPEC.acl)) {
        ctx.warn(&format!("rlock: the server refused the command {name:?}"));
        return false;
    }
    let described = sys::describe(ctx, &C::SPEC, &docs::parse(C::SPEC.usage));
    if !described {
        ctx.warn(&format!(
            "rlock: the server refused what {name:?} says of its keys"
        ));
    }
    described
}

/// Where the server enters a command.
struct EntryPoint<C>(PhantomData<C>);

impl<C: Command> Handler for EntryPoint<C> {
    const WHAT: &'static str = C::SPEC.usage;

    fn run(ctx: Ctx<'_>, args: RawArgs<'_>) {
        let done = SHELL.with(ctx, |shell| {
            if let Some(number) = C::quick(&Quick { shell, ctx, args }) {
                return Responder::Integer(number).send(ctx);
            }
            let named = [args.get(0), args.get(1)];
            let first_key = match C::SPEC.keys {
                KeyArgs::None => None,
                KeyArgs::One(_) => named[0],
                KeyArgs::Counted(_) => named[1],
            };
            let by = By::Command;
            let call = CommandCall {
                args,
                caller: Caller {
                    to: Replication { shell, ctx, by },
                    given: FirstArgs(&named),
                    first_key: first_key.map(|arg| arg.bytes()),
                },
                found: RefCell::default(),
            };
            let writes = C::SPEC.flags.starts_with("write");
            let may = call.is_master(writes);
            let may = may.and_then(|()| call.is_at_home(C::SPEC.keys));
            let reply = may.and_then(|()| C::run(&call));
            let reply = reply.unwrap_or_else(Responder::Error);
            let found = call.found.into_inner();
            if !found.is_empty() {
                run::attend(call.caller.to, found);
                watching::after_command(shell, ctx);
            }
            reply.send(ctx);
        });
        if done.is_none() {
            Self::failed(ctx);
        }
    }

    fn failed(ctx: Ctx<'_>) {
        Responder::Error(Error::fault()).send(ctx);
    }
}
